// log: only: what the disk may show after a crash, one process at a time, reboots, copies.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/random.h"
#include "service/store_life.h"
#include "tests/conformance/log_file_fixture.h"

namespace stint::testing {
namespace {

namespace fs = std::filesystem;

TEST_F(LogFile, MakesTheStoreOnceForItsUserOnly) {
  EXPECT_TRUE(open().value()->opening().created);
  EXPECT_FALSE(open().value()->opening().created);
  for (const auto& file : fs::directory_iterator(path_)) {
    EXPECT_EQ(fs::status(file).permissions() & fs::perms(077), fs::perms::none) << file;
  }
}

TEST_F(LogFile, MakesNothingWhereThatIsNotAllowed) {
  store::LogOptions chosen = options();
  chosen.may_create = false;
  expect_unavailable(open(chosen), "there is no store");
  EXPECT_FALSE(fs::exists(path_));
  fs::create_directory(path_);
  expect_unavailable(open(chosen), "there is no store");
}

TEST_F(LogFile, MakesNoneAmongOtherFiles) {
  fs::create_directory(path_);
  std::ofstream(path_ + "/thesis.tex") << "x";
  expect_unavailable(open(), "thesis.tex");
}

TEST_F(LogFile, IsRefusedOnAFileSystemThatIsNotKnownToSync) {
  store::LogOptions chosen = options();
  chosen.path = "/proc";
  EXPECT_FALSE(open(chosen));
}

TEST_F(LogFile, BelongsToOneOpeningAtATimeAndSaysWhose) {
  const auto store = std::move(open().value());
  expect_unavailable(open(), cat("is in use by process ", ::getpid()));
  put(*store, "k", "v");
  EXPECT_EQ(get(*store, "k").value, "v");
}

TEST_F(LogFile, WaitsForTheOneBeforeToLetGo) {
  auto store = std::move(open().value());
  store::LogOptions patient = options();
  patient.busy = Millis(60'000);
  std::thread closer([&] { store.reset(); });
  EXPECT_TRUE(open(patient));
  closer.join();
}

// EVIDENCE-OF: G11
TEST_F(LogFile, EverySnapshotAndEveryLogBehindItGiveTheSameRecords) {
  store::LogOptions often = options();
  often.snapshot_after = 20'000;
  SeededRandom random(7);
  std::map<std::string, std::string> expected;
  for (int opening = 0; opening < 6; ++opening) {
    const auto store = std::move(open(often).value());
    for (int i = 0; i < 400; ++i) {
      const std::string key = cat("k/", random.below(300));
      if (random.below(4) == 0) {
        ASSERT_TRUE(store->commit({remove(key)}, store::Sync::Relaxed));
        expected.erase(key);
      } else {
        const std::string value(random.below(4000), static_cast<char>('a' + random.below(26)));
        put(*store, key, value, store::Sync::Relaxed);
        expected[key] = value;
      }
    }
    std::map<std::string, std::string> seen;
    const auto reading = store->scan(under("k/", "", 1000)).value();
    for (const store::Entry& entry : reading.entries) seen[entry.key] = entry.value;
    EXPECT_TRUE(seen == expected) << seen.size() << " records, of " << expected.size();
  }
  const auto store = std::move(open(often).value());
  for (const auto& [key, value] : expected) EXPECT_EQ(get(*store, key).value, value);
  EXPECT_EQ(store->scan(under("k/", "", 1000)).value().entries.size(), expected.size());
  // What is not needed any more is removed, or used again for what comes.
  const std::string filler(4000, 'x');
  for (int i = 0; i < 20'000 && fs::exists(segment(1)); ++i) {
    put(*store, "filler", filler, store::Sync::Relaxed);
  }
  EXPECT_FALSE(fs::exists(segment(1)));
}

// EVIDENCE-OF: G11
TEST_F(LogFile, AnUnfinishedEndIsLeftOutAndTheNextCommitsStandInItsPlace) {
  {
    const auto store = std::move(open().value());
    put(*store, "a", "first-value");
    put(*store, "b", "second-value");
  }
  overwrite(segment(1), find_in_log("second-value"), "X");
  {
    const auto store = std::move(open_on_boot("boot-2").value());
    EXPECT_EQ(get(*store, "a").value, "first-value");
    EXPECT_FALSE(get(*store, "b").present());
    put(*store, "c", "third-value");
  }
  const auto store = std::move(open_on_boot("boot-2").value());
  EXPECT_EQ(get(*store, "c").value, "third-value");
  EXPECT_FALSE(get(*store, "b").present());
}

// A power cut keeps pages in any order: the later of two that were never synced.
TEST_F(LogFile, WhatAPowerCutKeptBehindAGapIsNotTakenUp) {
  {
    const auto store = std::move(open().value());
    put(*store, "a", "first-value");
    put(*store, "b", "second-value", store::Sync::Relaxed);
    put(*store, "c", "third-value", store::Sync::Relaxed);
  }
  overwrite(segment(1), find_in_log("second-value"), "X");
  expect_unavailable(open(), "is damaged");
  for (int i = 0; i < 2; ++i) {
    const auto store = std::move(open_on_boot("boot-2").value());
    EXPECT_EQ(get(*store, "a").value, "first-value");
    EXPECT_FALSE(get(*store, "b").present());
    EXPECT_FALSE(get(*store, "c").present()) << "never reordered before an earlier commit";
    put(*store, "d", "later");
  }
}

// EVIDENCE-OF: G11
TEST_F(LogFile, DamageInTheMiddleIsRefusedAndLeftAsItWas) {
  {
    const auto store = std::move(open().value());
    for (const char* key : {"a", "b", "c"}) put(*store, key, cat("value-of-", key));
  }
  overwrite(segment(1), find_in_log("value-of-a"), "X");
  const auto before = all_files();
  expect_unavailable(open(), "does not fit its checksum");
  expect_unavailable(open_on_boot("boot-2"), "entry 1 of its log");
  EXPECT_EQ(all_files(), before);
}

// Nobody was promised a sync of it, but the log went on in the next segment.
// EVIDENCE-OF: G11
TEST_F(LogFile, DamageAtTheEndOfASegmentIsRefusedWhenTheLogGoesOnBehindIt) {
  {
    const auto store = std::move(open().value());
    const std::string filler(4000, 'x');
    for (int i = 0; i < 300; ++i) {
      put(*store, "filler", cat("value-of-", i, filler), store::Sync::Relaxed);
    }
  }
  ASSERT_NE(content(segment(2)).find("value-of-"), std::string::npos);
  overwrite(segment(1), content(segment(1)).rfind("value-of-"), "X");
  expect_unavailable(open_on_boot("boot-2"), "is damaged");
  EXPECT_TRUE(fs::exists(segment(2)));
}

TEST_F(LogFile, ADamagedMissingOrShortPartIsRefused) {
  {
    const auto store = std::move(open().value());
    put(*store, "a", "value");
  }
  const std::string snapshot = path_ + "/snapshot";
  const std::string whole = content(snapshot);
  overwrite(snapshot, whole.size() / 2, "XXXXXXXX");
  expect_unavailable(open(), "its snapshot");
  fs::remove(snapshot);
  expect_unavailable(open(), "its snapshot is missing");
  std::ofstream(snapshot, std::ios::binary) << whole.substr(0, whole.size() - 8);
  expect_unavailable(open(), "its snapshot");
  std::ofstream(snapshot, std::ios::binary) << whole;
  fs::resize_file(segment(1), 500'000);
  expect_unavailable(open(), "instead of");
  fs::remove(segment(1));
  expect_unavailable(open(), "is missing");
}

// EVIDENCE-OF: G12
TEST_F(LogFile, DeletedOrReplacedWhileInUseIsNoticed) {
  const auto store = std::move(open().value());
  put(*store, "k", "v");
  fs::rename(path_, path_ + ".gone");
  expect_unavailable(store->read({"k"}), "moved or deleted");
  expect_unavailable(store->scan(under("k")), "moved or deleted");
  expect_unavailable(store->commit({set("k", "w")}, store::Sync::Durable), "moved or deleted");
  fs::create_directory(path_);
  std::ofstream(path_ + "/lock") << "1\n";
  expect_unavailable(store->commit({set("k", "w")}, store::Sync::Durable), "moved or deleted");
}

// EVIDENCE-OF: G12
TEST_F(LogFile, StaysWithItsProcessWhenItsLockIsDeletedOrReplaced) {
  auto store = std::move(open().value());
  put(*store, "k", "v");
  fs::remove(path_ + "/lock");
  expect_unavailable(open(), "is in use");
  ASSERT_TRUE(fs::exists(path_ + "/lock")) << "made anew by the one who was refused";
  expect_unavailable(open(), "is in use");
  expect_unavailable(store->commit({set("k", "w")}, store::Sync::Durable), "moved or deleted");
  store.reset();
  EXPECT_EQ(get(*open().value(), "k").value, "v");
}

// EVIDENCE-OF: G3 G4
TEST_F(LogFile, AfterARebootARunningTimerGetsItsFullLengthOnce) {
  {
    const auto store = std::move(open().value());
    start(*store, "running", Millis(10'000));
    start(*store, "fired", Millis(1000));
    clock_.advance(Millis(9000));
    put(*store, "late", "v");
  }
  std::optional<std::string> told;
  {
    const auto after = std::move(open_on_boot("boot-2").value());
    told = after->opening().prolonged;
    EXPECT_TRUE(told);
    EXPECT_EQ(get(*after, "running").timer.remaining, Millis(10'000));
    EXPECT_EQ(get(*after, "fired").timer.state, TimerState::Fired) << "never one that had run out";
  }
  clock_.advance(Millis(4000));
  const auto again = std::move(open_on_boot("boot-2").value());
  EXPECT_EQ(again->opening().prolonged, told) << "the same one, recorded once";
  EXPECT_EQ(get(*again, "running").timer.remaining, Millis(6000));
}

// Without /proc. EVIDENCE-OF: G3
TEST_F(LogFile, WhereTheBootHasNoNameNothingIsProlonged) {
  start(*open().value(), "running", Millis(10'000));
  clock_.advance(Millis(4000));
  store::LogOptions unnamed = options();
  unnamed.clock_name = {.boot_id = "", .time_namespace = "", .machine_id = ""};
  for (const auto& chosen : {unnamed, options(), unnamed, options()}) {
    const auto store = std::move(open(chosen).value());
    EXPECT_FALSE(store->opening().prolonged);
    EXPECT_EQ(get(*store, "running").timer.remaining, Millis(6000));
  }
}

TEST_F(LogFile, ARebootWithNothingRunningProlongsNothing) {
  put(*open().value(), "k", "v");
  EXPECT_FALSE(open_on_boot("boot-2").value()->opening().prolonged);
}

// EVIDENCE-OF: G4
TEST_F(LogFile, IsRefusedUnderAnotherTimeNamespaceOfTheSameBoot) {
  ASSERT_TRUE(open());
  store::LogOptions chosen = options();
  chosen.clock_name.time_namespace = "time:[2]";
  expect_unavailable(open(chosen), "another time namespace");
}

struct KeptAnchor final : service::Anchors {
  Result<std::optional<service::Anchor>> recall() override { return anchor; }
  void remember(const service::Anchor& seen) override { anchor = seen; }
  std::optional<service::Anchor> anchor;
};

// A new boot leaves room in the versions; the revision must not hide behind it.
// EVIDENCE-OF: G1 G12
TEST_F(LogFile, AnOlderCopyThatIsPutBackIsRefusedOnANewBootToo) {
  SeededRandom random(1);
  KeptAnchor anchors;
  const std::string backup = path_ + ".backup";
  {
    const auto store = std::move(open().value());
    const auto life = service::begin_life(*store, random, clock_.wall(), &anchors, {}).value();
    put(*store, "k", "1");
    fs::copy(path_, backup, fs::copy_options::recursive);
    for (int i = 0; i < 20; ++i) put(*store, "k", "2");
    anchors.anchor = {life.meta.generation, store->revision().value(), Token(7)};
  }
  const auto begin = [&](const std::string& boot) {
    const auto store = std::move(open_on_boot(boot).value());
    return service::begin_life(*store, random, clock_.wall(), &anchors, {});
  };
  EXPECT_TRUE(begin("boot-2")) << "the one that it remembers";
  fs::remove_all(path_);
  fs::rename(backup, path_);
  expect_unavailable(begin("boot-2"), "went back in time");
  expect_unavailable(begin("boot-3"), "went back in time");
}

TEST_F(LogFile, VersionsJumpAtABootAndTheRevisionDoesNot) {
  std::uint64_t before = 0;
  {
    const auto first = std::move(open().value());
    put(*first, "k", "1");
    before = first->revision().value();
  }
  const auto store = std::move(open_on_boot("boot-2").value());
  EXPECT_EQ(store->revision().value(), before);
  const auto answer = store->commit({set("k", "2")}, store::Sync::Durable).value();
  const auto& done = std::get<store::Committed>(answer);
  EXPECT_EQ(done.revision, before + 1);
  EXPECT_EQ(store->revision().value(), done.revision);
  EXPECT_GE(done.versions.front(), std::uint64_t{1} << 20U);
}

// EVIDENCE-OF: G12
TEST_F(LogFile, ACopyOnAnotherMachineIsRefusedUntilRecovered) {
  SeededRandom random(1);
  const auto before =
      service::begin_life(*open().value(), random, clock_.wall(), nullptr, {}).value();
  store::LogOptions there = options();
  there.clock_name.boot_id = "boot-9";
  there.clock_name.machine_id = "machine-2";
  expect_unavailable(open(there), "copied from another machine");
  store::LogOptions accepting = there;
  accepting.accept_copy = true;
  EXPECT_TRUE(open(accepting).value()->opening().copied);
  expect_unavailable(open(there), "copied from another machine");
  {
    const auto store = std::move(open(accepting).value());
    const auto life = service::recover(*store, random, clock_.wall(), nullptr,
                                       {.why = "moved", .by = "op", .past = Token()});
    ASSERT_TRUE(life);
    EXPECT_EQ(life->meta.ancestors, std::vector{before.meta.generation});
  }
  EXPECT_FALSE(open(there).value()->opening().copied);
}

}  // namespace
}  // namespace stint::testing
