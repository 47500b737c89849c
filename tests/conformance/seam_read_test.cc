// The seam: read and scan.
#include <atomic>
#include <thread>

#include "base/text.h"
#include "tests/conformance/seam_fixture.h"

namespace stint::testing {
namespace {

class SeamRead : public SeamTest {};
STINT_FOR_EVERY_STORE(SeamRead);
class SeamScan : public SeamTest {
 protected:
  void SetUp() override {
    commit({set("a/1", "1"), set("b/1", "1"), set("b/2", "2"), set("b/3", "3"),
            set("b/\xC3\xA9", "e"), set("b", "-"), set("c/1", "1")});
  }
};
STINT_FOR_EVERY_STORE(SeamScan);

using Keys = std::vector<std::string>;

TEST_P(SeamRead, AnswersInTheOrderAskedAndTellsWhatIsAbsent) {
  const auto done = commit({set("k/b", "two"), set("k/a", "one")});
  ASSERT_TRUE(done);
  const auto entries = store_->read({"k/a", "k/none", "k/b"}).value().entries;
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].value, "one");
  EXPECT_EQ(entries[0].version, done->versions[1]);
  EXPECT_EQ(entries[1].key, "k/none");
  EXPECT_FALSE(entries[1].present());
  EXPECT_EQ(entries[1].timer.state, TimerState::None);
  EXPECT_EQ(entries[2].value, "two");
}

TEST_P(SeamRead, OfNothingIsEmpty) { EXPECT_TRUE(store_->read({}).value().entries.empty()); }

TEST_P(SeamRead, KeepsEveryByteOfAValueAndEmptyOnes) {
  std::string value;
  for (int c = 1; c < 128; ++c) value += static_cast<char>(c);
  value += "\xF0\x9F\x90\x8C";
  commit({set("k/1", value), set("k/2", "")});
  EXPECT_EQ(get("k/1").value, value);
  EXPECT_EQ(get("k/2").value, "");
  EXPECT_TRUE(get("k/2").present());
}

TEST_P(SeamRead, SeesKeysExactly) {
  commit({set("k/a", "1"), set("k/A", "2"), set("k/a ", "3"), set("k/\x1F", "4")});
  EXPECT_EQ(get("k/a").value, "1");
  EXPECT_EQ(get("k/A").value, "2");
  EXPECT_EQ(get("k/a ").value, "3");
  EXPECT_EQ(get("k/\x1F").value, "4");
}

TEST_P(SeamRead, HasAStoreTimeThatNeverGoesBack) {
  std::optional<Nanos> last;
  for (int i = 0; i < 20; ++i) {
    const auto reading = store_->read({"k"}).value();
    if (!reading.store_time) GTEST_SKIP() << GetParam().name << " has no clock of its own";
    if (last) {
      EXPECT_GE(*reading.store_time, *last);
    }
    last = reading.store_time;
    site_->tick();
  }
}

TEST_P(SeamRead, ShowsNewestCommitOfAnotherOpening) {
  const auto other = site_->open();
  commit({set("k", "mine")});
  EXPECT_EQ(other->read({"k"}).value().entries.front().value, "mine");
}

TEST_P(SeamScan, GivesThePrefixInKeyOrder) {
  EXPECT_EQ(keys(under("b/")), (Keys{"b/1", "b/2", "b/3", "b/\xC3\xA9"}));
  EXPECT_EQ(keys(under("b")), (Keys{"b", "b/1", "b/2", "b/3", "b/\xC3\xA9"}));
  EXPECT_EQ(keys(under("x")), Keys{});
}

TEST_P(SeamScan, StopsAtItsLimit) {
  EXPECT_EQ(keys(under("b/", "", 2)), (Keys{"b/1", "b/2"}));
  EXPECT_EQ(keys(under("b/", "", 0)), Keys{});
  EXPECT_EQ(keys(under("b/", "", SIZE_MAX)).size(), 4U);
}

TEST_P(SeamScan, GoesOnAfterAKeyThatNeedNotBeThere) {
  EXPECT_EQ(keys(under("b/", "b/1", 2)), (Keys{"b/2", "b/3"}));
  EXPECT_EQ(keys(under("b/", "b/11", 2)), (Keys{"b/2", "b/3"}));
  EXPECT_EQ(keys(under("b/", "b/\xC3\xA9")), Keys{});
}

TEST_P(SeamScan, GoesBackwardsFromTheEndOrFromAKey) {
  EXPECT_EQ(keys(under("b/", "", 2, true)), (Keys{"b/\xC3\xA9", "b/3"}));
  EXPECT_EQ(keys(under("b/", "b/3", 9, true)), (Keys{"b/2", "b/1"}));
  EXPECT_EQ(keys(under("b/", "b/1", 9, true)), Keys{});
}

TEST_P(SeamScan, StaysWithinThePrefixWhereverAfterPoints) {
  for (const char* outside : {"a", "a/1", "a/zz"}) {
    EXPECT_EQ(keys(under("b/", outside)).size(), 4U) << outside;
    EXPECT_EQ(keys(under("b/", outside, 9, true)), Keys{}) << outside;
  }
  for (const char* outside : {"c", "c/1", "d"}) {
    EXPECT_EQ(keys(under("b/", outside)), Keys{}) << outside;
    EXPECT_EQ(keys(under("b/", outside, 9, true)).size(), 4U) << outside;
  }
}

// For the sanitizers: what a scan goes by was freed when another thread learnt of a new prefix.
TEST_P(SeamScan, IsWholeWhileAnotherThreadAppendsUnderNewPrefixes) {
  constexpr int kPrefixes = 30;
  std::atomic<bool> over = false;
  std::thread appender([&] {
    for (int i = 0; i < kPrefixes; ++i) {
      EXPECT_TRUE(store_->commit({append(cat("log", i, "/"), "v")}, store::Sync::Durable));
    }
    over = true;
  });
  while (!over) {
    const auto page = store_->scan(under("b/"));
    EXPECT_TRUE(page && page->entries.size() == 4U);
  }
  appender.join();
  EXPECT_EQ(store_->scan(under("log")).value().entries.size(), std::size_t{kPrefixes});
}

TEST_P(SeamScan, ShowsValuesVersionsAndTimers) {
  const auto done = commit({timed(set("t/1", "v"), Step::TimerOp::Start, kLong)});
  const auto entries = scan(under("t/"));
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].value, "v");
  EXPECT_EQ(entries[0].version, done->versions[0]);
  EXPECT_EQ(entries[0].timer.state, TimerState::Running);
}

}  // namespace
}  // namespace stint::testing
