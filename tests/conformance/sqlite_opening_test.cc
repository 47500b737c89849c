// sqlite: only: reboots, copies, namespaces, strange files, first use by many.
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "service/ledger.h"
#include "service/store_life.h"
#include "tests/conformance/sqlite_fixture.h"

namespace stint::testing {
namespace {

class SqliteOpening : public SqliteTest {
 protected:
  void sql(const char* text) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(db, text, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
  }
};

TEST_F(SqliteOpening, MakesTheFileOnceForItsUserOnly) {
  EXPECT_TRUE(open().value()->opening().created);
  EXPECT_FALSE(open().value()->opening().created);
  struct stat file {};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777U, 0600U);
}

TEST_F(SqliteOpening, MakesNoFileWhereThatIsNotAllowed) {
  store::SqliteOptions chosen = options();
  chosen.may_create = false;
  expect_unavailable(open(chosen), "there is no store");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// EVIDENCE-OF: G3 G4
TEST_F(SqliteOpening, AfterARebootARunningTimerGetsItsFullLengthOnce) {
  {
    const auto store = std::move(open().value());
    start(*store, "running", Millis(10'000));
    start(*store, "fired", Millis(1000));
    clock_.advance(Millis(9000));
    ASSERT_TRUE(put(*store, "late", "v"));
  }
  const auto after = std::move(open_on_boot("boot-2").value());
  EXPECT_TRUE(after->opening().prolonged);
  EXPECT_EQ(get(*after, "running").timer.remaining, Millis(10'000));
  EXPECT_EQ(get(*after, "fired").timer.state, TimerState::Fired) << "never one that had run out";
  clock_.advance(Millis(4000));
  const auto again = std::move(open_on_boot("boot-2").value());
  EXPECT_EQ(again->opening().prolonged, after->opening().prolonged)
      << "the same one, recorded once";
  EXPECT_EQ(get(*again, "running").timer.remaining, Millis(6000));
}

TEST_F(SqliteOpening, TheLongerEndThatARenewalLeftIsCarriedOverAReboot) {
  {
    const auto store = std::move(open().value());
    start(*store, "k", Millis(60'000));
    const Step shorter =
        timed(demanding(touch("k"), TimerState::Running), Step::TimerOp::Extend, Millis(1000));
    ASSERT_TRUE(store->commit({shorter}, store::Sync::Relaxed));
  }
  EXPECT_EQ(get(*open_on_boot("boot-2").value(), "k").timer.remaining, Millis(60'000));
}

// Without /proc. EVIDENCE-OF: G3
TEST_F(SqliteOpening, WhereTheBootHasNoNameNothingIsProlonged) {
  const auto unnamed = [&](std::string machine) {
    store::SqliteOptions chosen = options();
    chosen.clock_name = {.boot_id = "", .time_namespace = "", .machine_id = std::move(machine)};
    return chosen;
  };
  {
    const auto store = std::move(open().value());
    start(*store, "running", Millis(10'000));
    start(*store, "fired", Millis(1000));
    clock_.advance(Millis(4000));
  }
  for (const char* machine : {"machine-1", "", "machine-1"}) {
    for (const auto& chosen : {unnamed(machine), options()}) {
      const auto store = std::move(open(chosen).value());
      EXPECT_FALSE(store->opening().prolonged);
      EXPECT_EQ(get(*store, "running").timer.remaining, Millis(6000));
      EXPECT_EQ(get(*store, "fired").timer.state, TimerState::Fired);
      ASSERT_TRUE(put(*store, "more", "v"));
    }
  }
  expect_unavailable(open(unnamed("machine-2")), "copied from another machine");
  // The rule is there again where the boot has a name.
  EXPECT_TRUE(open_on_boot("boot-2").value()->opening().prolonged);
}

TEST_F(SqliteOpening, AClockWithoutANameThatStandsBehindIsAnother) {
  const FakeClock after_the_start;
  clock_.advance(Millis(3'600'000));
  start(*open().value(), "running", Millis(10'000));
  store::SqliteOptions chosen = options();
  chosen.clock_name = {.boot_id = "", .time_namespace = "", .machine_id = "machine-1"};
  expect_unavailable(store::SqliteStore::open(chosen, after_the_start), "without /proc");
  // The time namespace is seen, and it is the same: then the machine was started anew.
  chosen.clock_name.time_namespace = "time:[1]";
  for (int i = 0; i < 2; ++i) {
    const auto store = std::move(store::SqliteStore::open(chosen, after_the_start).value());
    EXPECT_TRUE(store->opening().prolonged);
    EXPECT_EQ(get(*store, "running").timer.remaining, Millis(10'000));
  }
}

TEST_F(SqliteOpening, EveryRebootThatProlongsSaysSoUnderItsOwnName) {
  start(*open().value(), "k", Millis(10'000));
  const auto second = open_on_boot("boot-2").value()->opening().prolonged;
  clock_.advance(Millis(1000));
  const auto third = open_on_boot("boot-3").value()->opening().prolonged;
  ASSERT_TRUE(second);
  ASSERT_TRUE(third) << "it still ran, on an earlier boot's timer";
  EXPECT_NE(*second, *third);
}

TEST_F(SqliteOpening, ARebootWithNothingRunningProlongsNothing) {
  ASSERT_TRUE(put(*open().value(), "k", "v"));
  EXPECT_FALSE(open_on_boot("boot-2").value()->opening().prolonged);
}

// EVIDENCE-OF: G3
TEST_F(SqliteOpening, AProlongationIsWrittenIntoTheLedgerOnce) {
  SeededRandom random(1);
  start(*open().value(), "k", Millis(10'000));
  const auto store = std::move(open_on_boot("boot-2").value());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(service::begin_life(*store, random, clock_.wall(), nullptr, {}));
  }
  service::Ledger ledger(*store, clock_, 100);
  const auto events =
      ledger.list({.after = "", .prefix = "", .limit = 10, .newest = false}).value();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, "prolonged");
}

// EVIDENCE-OF: G4
TEST_F(SqliteOpening, IsRefusedUnderAnotherTimeNamespaceOfTheSameBoot) {
  ASSERT_TRUE(open());
  store::SqliteOptions chosen = options();
  chosen.clock_name.time_namespace = "time:[2]";
  expect_unavailable(open(chosen), "another time namespace");
}

// EVIDENCE-OF: G12
TEST_F(SqliteOpening, ACopyOnAnotherMachineIsRefusedUntilRecovered) {
  SeededRandom random(1);
  const auto before =
      service::begin_life(*open().value(), random, clock_.wall(), nullptr, {}).value();
  store::SqliteOptions there = options();
  there.clock_name.boot_id = "boot-9";
  there.clock_name.machine_id = "machine-2";
  expect_unavailable(open(there), "copied from another machine");
  ASSERT_TRUE(open()) << "who is refused changes nothing";
  store::SqliteOptions accepting = there;
  accepting.accept_copy = true;
  {
    const auto store = std::move(open(accepting).value());
    EXPECT_TRUE(store->opening().copied);
    expect_unavailable(open(there), "copied from another machine");
    const auto life = service::recover(*store, random, clock_.wall(), nullptr,
                                       {.why = "moved", .by = "op", .past = Token()});
    ASSERT_TRUE(life);
    EXPECT_EQ(life->meta.ancestors, std::vector{before.meta.generation});
  }
  ASSERT_TRUE(open(there));
  EXPECT_FALSE(open(there).value()->opening().copied);
}

TEST_F(SqliteOpening, AMachineWithoutANameCannotTellARebootFromACopy) {
  store::SqliteOptions nameless = options();
  nameless.clock_name.machine_id = "";
  ASSERT_TRUE(open(nameless));
  ASSERT_TRUE(open(nameless));
  nameless.clock_name.boot_id = "boot-2";
  expect_unavailable(open(nameless), "copied");
}

TEST_F(SqliteOpening, ANewerSchemaIsRefusedAndLeftAlone) {
  ASSERT_TRUE(open());
  sql("PRAGMA user_version=99");
  expect_unavailable(open(), "Use a newer stint");
  expect_unavailable(open_on_boot("boot-2"), "Use a newer stint");
}

TEST_F(SqliteOpening, AnotherProgramsDatabaseIsRefused) {
  sql("CREATE TABLE t(x)");
  expect_unavailable(open(), "not a Stint store");
}

TEST_F(SqliteOpening, GarbageIsRefusedAndLeftAsItWas) {
  const std::string garbage(10'000, 'x');
  std::ofstream(path_) << garbage;
  expect_unavailable(open(), "damaged or is not a Stint store");
  std::ifstream file(path_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), garbage);
}

TEST_F(SqliteOpening, AnEmptyFileAndADirectoryAreRefused) {
  { const std::ofstream empty(path_); }
  expect_unavailable(open(), "not a Stint store");
  path_ = directory_.path();
  EXPECT_FALSE(open());
}

TEST_F(SqliteOpening, IsRefusedOnAFileSystemThatIsNotKnownToLock) {
  store::SqliteOptions chosen = options();
  chosen.path = "/proc/stint.db";
  EXPECT_FALSE(open(chosen));
}

TEST_F(SqliteOpening, FirstUseBySixteenProcessesMakesOneStore) {
  const auto codes = in_processes(16, [&](int i) {
    SeededRandom random(static_cast<std::uint64_t>(i));
    auto store = open();
    if (!store) return 1;
    if (!service::begin_life(**store, random, clock_.wall(), nullptr, {})) return 2;
    if (!put(**store, "k/" + std::to_string(i), "v")) return 3;
    return (*store)->opening().created ? 10 : 0;
  });
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 10), 1) << "exactly one made it";
  EXPECT_EQ(std::count(codes.begin(), codes.end(), 0), 15);
  EXPECT_EQ(open().value()->scan(under("k/")).value().entries.size(), 16U);
  for (const auto& file : std::filesystem::directory_iterator(directory_.path())) {
    EXPECT_EQ(file.path().string().find(".new"), std::string::npos) << "nothing half-made is left";
  }
}

}  // namespace
}  // namespace stint::testing
