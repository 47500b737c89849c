// log: only: which entries count. Whole by themselves they may still be another use's, or too few.
#include <filesystem>

#include "os/directory.h"
#include "store/log/snapshot.h"
#include "tests/conformance/log_file_fixture.h"

namespace stint::testing {
namespace {

// Segments are used again: behind the end of the log stand entries whose checksums fit.
// EVIDENCE-OF: G11
TEST_F(LogFile, WhatAnEarlierUseOfTheSpaceLeftIsNotTakenUp) {
  {
    const auto store = std::move(open().value());
    for (const char* value : {"old-1", "old-2", "old-3"}) put(*store, "k", value);
  }
  const std::string earlier = content(segment(1));
  const std::size_t third = earlier.rfind("SNTL");
  ASSERT_NE(third, std::string::npos);
  std::filesystem::remove_all(path_);
  {
    const auto store = std::move(open().value());
    for (const char* value : {"new-1", "new-2"}) put(*store, "k", value);
  }
  ASSERT_EQ(content(segment(1)).substr(third, 8), std::string(8, '\0')) << "the end of this one";
  overwrite(segment(1), third, std::string_view(earlier).substr(third));
  const auto store = std::move(open().value());
  EXPECT_EQ(get(*store, "k").value, "new-2");
  put(*store, "k", "new-3");
  EXPECT_EQ(get(*store, "k").value, "new-3");
}

// Its records may be newer than the log that it begins with; then the log must have them, too.
// EVIDENCE-OF: G11
TEST_F(LogFile, ALogThatEndsBeforeWhatItsSnapshotKnowsIsRefused) {
  put(*open().value(), "k", "v");
  os::Directory root;
  ASSERT_EQ(os::Directory::open(path_, root), 0);
  const auto snapshot_that_knows = [&](std::uint64_t end) {
    store::log::Table table;
    const auto made = store::log::read_snapshot(root, path_, table);
    ASSERT_TRUE(made);
    store::log::SnapshotWriter writer(root, path_);
    ASSERT_TRUE(writer.begin(made->head));
    ASSERT_TRUE(writer.finish(end));
  };
  snapshot_that_knows(1);
  EXPECT_EQ(get(*open().value(), "k").value, "v");
  snapshot_that_knows(2);
  expect_unavailable(open(), "its log ends at entry 1, and its snapshot knows 2");
}

// Those of one write are judged one after the other, before any of them is on the disk.
// EVIDENCE-OF: G2
TEST_F(LogFile, OfTwoInOneBatchThatWantTheSameOneGetsIt) {
  const auto store = std::move(open().value());
  Step first = set("k", "first");
  first.expect = store::Expect::Absent;
  Step second = set("k", "second");
  second.expect = store::Expect::Absent;
  const auto answers = store->commit_many({{.steps = {first}, .sync = store::Sync::Durable},
                                           {.steps = {second}, .sync = store::Sync::Durable}});
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<store::Committed>(answers[0].value()));
  EXPECT_TRUE(std::holds_alternative<store::Conflict>(answers[1].value()));
  EXPECT_EQ(get(*store, "k").value, "first");
}

// Who waited for his turn has looked at the clock before the one whose turn it was.
// EVIDENCE-OF: G4
TEST_F(LogFile, TheTimeOfACommitIsNeverBeforeTheLastOnes) {
  const auto store = std::move(open().value());
  const auto time_of_a_commit = [&] {
    const auto answer = store->commit({set("k", "v")}, store::Sync::Durable).value();
    return std::get<store::Committed>(answer).store_time.value();
  };
  const auto before = time_of_a_commit();
  clock_.advance(-Millis(5000));
  EXPECT_GE(time_of_a_commit(), before);
}

}  // namespace
}  // namespace stint::testing
