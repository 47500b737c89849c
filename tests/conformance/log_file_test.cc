// log: only: what the disk may show after a crash, one process at a time, reboots, copies.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "service/store_life.h"
#include "store/log/log_store.h"
#include "tests/conformance/seam_fixture.h"
#include "tests/conformance/stores.h"

namespace stint::testing {
namespace {

namespace fs = std::filesystem;

class LogFile : public ::testing::Test {
 protected:
  using Opened = Result<std::unique_ptr<store::LogStore>>;

  store::LogOptions options() const {
    store::LogOptions out;
    out.path = path_;
    out.clock_name = {.boot_id = "boot-1", .time_namespace = "time:[1]", .machine_id = "machine-1"};
    out.busy = Millis(0);
    out.segment_size = store::LogOptions::kSmallestSegment;
    return out;
  }
  Opened open(const store::LogOptions& chosen) { return store::LogStore::open(chosen, clock_); }
  Opened open() { return open(options()); }
  Opened open_on_boot(std::string boot) {
    store::LogOptions chosen = options();
    chosen.clock_name.boot_id = std::move(boot);
    return open(chosen);
  }
  template <class T>
  static void expect_unavailable(const Result<T>& result, std::string_view why) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Code::Unavailable);
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
  }
  static void put(store::Store& store, const std::string& key, const std::string& value,
                  store::Sync sync = store::Sync::Durable) {
    ASSERT_TRUE(store.commit({set(key, value)}, sync));
  }
  static void start(store::Store& store, const std::string& key, Millis ttl) {
    ASSERT_TRUE(
        store.commit({timed(set(key, "v"), Step::TimerOp::Start, ttl)}, store::Sync::Durable));
  }
  static store::Entry get(store::Store& store, const std::string& key) {
    return store.read({key}).value().entries.front();
  }

  std::string segment(int number) const {
    const std::string digits = std::to_string(number);
    return cat(path_, "/log.", std::string(16 - digits.size(), '0'), digits);
  }
  static std::string content(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Where this text stands in the first segment; it must be there once.
  std::size_t find_in_log(std::string_view text) const {
    const std::string bytes = content(segment(1));
    const std::size_t at = bytes.find(text);
    EXPECT_NE(at, std::string::npos);
    EXPECT_EQ(bytes.find(text, at + 1), std::string::npos);
    return at;
  }
  static void overwrite(const std::string& file, std::size_t at, std::string_view bytes) {
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at));
    out << bytes;
  }
  // Reads every file twice: what was refused is left as it was.
  std::map<std::string, std::string> all_files() const {
    std::map<std::string, std::string> out;
    for (const auto& file : fs::directory_iterator(path_)) {
      if (file.path().filename() != "lock") out[file.path()] = content(file.path());
    }
    return out;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.path() + "/store";
  FakeClock clock_;
};

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

// Blocks that end anywhere in what is read at a time.
// EVIDENCE-OF: G11
TEST_F(LogFile, ASnapshotOfTheLargestRecordsIsReadBack) {
  constexpr int kRows = 6000;
  const auto key = [](int i) {
    const std::string digits = std::to_string(10'000 + i);
    return digits + std::string(store::Store::kMaxKeyBytes - digits.size(), 'k');
  };
  {
    store::LogOptions never = options();
    never.snapshot_after = std::uint64_t{1} << 40U;
    const auto store = std::move(open(never).value());
    for (int i = 0; i < kRows; ++i) {
      put(*store, key(i), std::string(store::Store::kMaxValueBytes, 'v'), store::Sync::Relaxed);
    }
  }
  store::LogOptions at_the_close = options();
  at_the_close.snapshot_after = 1;
  ASSERT_TRUE(open(at_the_close));
  ASSERT_GT(fs::file_size(path_ + "/snapshot"), kRows * store::Store::kMaxValueBytes);
  const auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ((*store)->scan(under("1", "", kRows + 1)).value().entries.size(), kRows);
}

// EVIDENCE-OF: G11
TEST_F(LogFile, SegmentsOfAnotherSizeAreNotUsedAgain) {
  const std::string filler(4000, 'x');
  const auto sized = [&](int megabytes) {
    store::LogOptions out = options();
    out.segment_size = store::LogOptions::kSmallestSegment * static_cast<unsigned>(megabytes);
    out.snapshot_after = 20'000;
    return out;
  };
  int last = 0;
  for (const int megabytes : {2, 1, 3, 1}) {
    const auto store = open(sized(megabytes));
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(get(**store, "filler").present(), last > 0);
    // Through several segments: those from before are free by then, and their turn has come.
    for (int i = 0; i < 20'000 && !fs::exists(segment(last + 7)); ++i) {
      put(**store, "filler", filler, store::Sync::Relaxed);
    }
    ASSERT_TRUE(fs::exists(segment(last + 7)));
    last += 7;
  }
  EXPECT_TRUE(open(sized(2)));
}

// In a process of its own: too little address space for the stack of one more thread.
TEST_F(LogFile, CommitsGoOnWhereNoThreadCanBeHad) {
  const auto commits_without_threads = [this] {
    const auto store = std::move(open().value());
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    statm >> pages;
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (4U << 20U);
    if (::setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    const std::string filler(4000, 'x');
    for (int i = 0; i < 600; ++i) {
      if (!store->commit({set("filler", filler)}, store::Sync::Relaxed)) return 1;
    }
    return 0;
  };
  EXPECT_EXIT(::_exit(commits_without_threads()), ::testing::ExitedWithCode(0), "");
}

TEST_F(LogFile, WhatIsLeftOfASnapshotIsRemovedByTheNextOpening) {
  put(*open().value(), "k", "v");
  std::ofstream(path_ + "/snapshot.new") << "half of one";
  EXPECT_EQ(get(*open().value(), "k").value, "v");
  EXPECT_FALSE(fs::exists(path_ + "/snapshot.new"));
}

// In a process of its own: no file may be longer than a segment, as if the disk were full.
TEST_F(LogFile, ASnapshotThatFailsLeavesNothingBehindAndIsMadeWhenItCanBe) {
  store::LogOptions often = options();
  {
    const auto store = std::move(open().value());
    const std::string filler(4000, 'x');
    for (int i = 0; i < 400; ++i) put(*store, cat("k", i), filler, store::Sync::Relaxed);
  }
  often.snapshot_after = 100'000;
  const auto fails_and_succeeds = [&] {
    const auto store = std::move(open(often).value());
    const auto commits_until = [&](bool trouble) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (store->examine().value().empty() == trouble || fs::exists(path_ + "/snapshot.new")) {
        if (!store->commit({set("k0", "v")}, store::Sync::Relaxed)) return false;
        if (std::chrono::steady_clock::now() > deadline) return false;
      }
      return true;
    };
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlim_t before = std::exchange(limit.rlim_cur, often.segment_size);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0 || !commits_until(true)) return 1;
    limit.rlim_cur = before;
    clock_.advance(Millis(10'000));
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0 || !commits_until(false)) return 2;
    return fs::file_size(path_ + "/snapshot") > often.segment_size ? 0 : 3;
  };
  EXPECT_EXIT(::_exit(fails_and_succeeds()), ::testing::ExitedWithCode(0), "");
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
  put(*open().value(), "k", "1");
  const auto store = std::move(open_on_boot("boot-2").value());
  const std::uint64_t before = store->revision().value();
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
