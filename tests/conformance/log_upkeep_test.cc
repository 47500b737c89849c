// log: only: snapshots and segments, and what they do where disk or threads are short.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "os/directory.h"
#include "store/log/snapshot.h"
#include "tests/conformance/log_file_fixture.h"

namespace stint::testing {
namespace {

namespace fs = std::filesystem;

class LogUpkeep : public LogFile {};

// Blocks that end anywhere in what is read at a time.
// EVIDENCE-OF: G11
TEST_F(LogUpkeep, ASnapshotOfTheLargestRecordsIsReadBack) {
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

// Its records would be found by some and not by others.
TEST_F(LogUpkeep, ASnapshotThatIsNotInOrderIsRefused) {
  put(*open().value(), "k", "v");
  {
    os::Directory root;
    ASSERT_EQ(os::Directory::open(path_, root), 0);
    store::log::Table table;
    const auto before = store::log::read_snapshot(root, path_, table);
    ASSERT_TRUE(before) << before.error().message;
    store::log::SnapshotWriter writer(root, path_);
    ASSERT_TRUE(writer.begin(before->head));
    store::Row row;
    row.version = 1;
    for (const char* key : {"b", "a"}) writer.add(key, row);
    ASSERT_TRUE(writer.flush());
    ASSERT_TRUE(writer.finish(0));
  }
  const auto files = all_files();
  expect_unavailable(open(), "not in order");
  EXPECT_EQ(all_files(), files);
}

// EVIDENCE-OF: G11
TEST_F(LogUpkeep, SegmentsOfAnotherSizeAreNotUsedAgain) {
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
TEST_F(LogUpkeep, CommitsGoOnWhereNoThreadCanBeHad) {
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

TEST_F(LogUpkeep, WhatIsLeftOfASnapshotIsRemovedByTheNextOpening) {
  put(*open().value(), "k", "v");
  std::ofstream(path_ + "/snapshot.new") << "half of one";
  EXPECT_EQ(get(*open().value(), "k").value, "v");
  EXPECT_FALSE(fs::exists(path_ + "/snapshot.new"));
}

// In a process of its own: no file may be longer than a segment, as if the disk were full.
TEST_F(LogUpkeep, ASnapshotThatFailsLeavesNothingBehindAndIsMadeWhenItCanBe) {
  store::LogOptions often = options();
  {
    const auto store = std::move(open().value());
    const std::string filler(4000, 'x');
    for (int i = 0; i < 400; ++i) put(*store, cat("k", i), filler, store::Sync::Relaxed);
  }
  often.snapshot_after = 100'000;
  const auto fails_and_succeeds = [&] {
    const auto store = std::move(open(often).value());
    const auto troubled = [&] {
      return std::ranges::any_of(store->examine().value(), [](const store::Finding& one) {
        return one.level != store::Finding::Level::Ok;
      });
    };
    const auto commits_until = [&](bool trouble) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      while (troubled() != trouble) {
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
    // While the clock stands still it is not tried again.
    if (fs::exists(path_ + "/snapshot.new")) return 3;
    limit.rlim_cur = before;
    clock_.advance(Millis(10'000));
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0 || !commits_until(false)) return 2;
    return fs::file_size(path_ + "/snapshot") > often.segment_size ? 0 : 4;
  };
  EXPECT_EXIT(::_exit(fails_and_succeeds()), ::testing::ExitedWithCode(0), "");
}

TEST_F(LogUpkeep, AWatchWithoutADescriptorIsAnError) {
  const auto store = std::move(open().value());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto refused = store->watch("k");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(refused);
  EXPECT_TRUE(store->watch("k"));
}

}  // namespace
}  // namespace stint::testing
