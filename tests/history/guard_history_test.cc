// The checker of the checker, rules 7 to 16 and the search for an order: each is broken once, by
// hand, and that very rule is named with the operations involved.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/history/tale.h"

namespace stint::test {
namespace {

// Exactly this rule, once, with exactly these lines of the history (counted from 1).
void expect_named(const Tale& t, int rule, const std::vector<int>& lines) {
  const HistoryReport report = check_history(t.lines);
  ASSERT_EQ(report.violations.size(), 1U) << report.text();
  const Violation& violation = report.violations.front();
  EXPECT_EQ(violation.invariant, rule) << report.text();
  ASSERT_EQ(violation.operations.size(), lines.size()) << report.text();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(violation.operations[i].starts_with(cat("line ", lines[i], ":"))) << report.text();
  }
}

TEST(GuardHistory, FindsNothingInACleanOne) {
  Tale t;
  t.granted(1, 0);
  t.sealed(1);
  t.read(1, 0);
  t.wrote(1, 1, "a");
  t.fence(1);
  t.granted(2, 200);
  t.sealed(2);
  t.fence(2);
  t.fenced(1, "b");
  t.read(2, 1, "a");
  t.wrote(2, 2, "c");
  t.named(verbs::kClaim, "item", 1);
  t.named(verbs::kComplete, "item", 1);
  t.named(verbs::kSlot, "12:00", 1, "started");
  t.named(verbs::kSlot, "12:00", 1, "completed");
  t.named(verbs::kSlot, "12:05", 1, "skipped");
  t.named(verbs::kDue, "12:00", 0);
  t.named(verbs::kDue, "12:05", 0);
  t.landed(1, 1, "a");
  t.landed(2, 2, "c");
  EXPECT_EQ(t.broken(), Names{}) << check_history(t.lines).text();
}

TEST(GuardHistory, AllowsWhatUnknownOutcomesExplain) {
  Tale t;
  t.unknown(verbs::kAcquire);  // it was granted token 1, or will be
  t.sealed(1);
  t.at_target(verbs::kWrite, 1, Phase::Info, 0, "a");  // it landed
  t.read(1, 1, "a");
  t.granted(2, 500);
  t.sealed(2);
  t.unknown(verbs::kRelease, 2);  // it happened
  t.granted(3, 510);
  t.sealed(3);
  t.read(3, 1, "a");
  t.at_target(verbs::kWrite, 3, Phase::Info, 0, "b");  // it did not
  t.unknown(verbs::kRenew, 3);
  t.lost(verbs::kRenew, 3, "expired");
  t.landed(1, 1, "a");
  EXPECT_EQ(t.broken(), Names{}) << check_history(t.lines).text();
}

TEST(GuardHistory, NamesAFenceThatWentDown) {
  Tale t;
  t.granted(1, 0);
  t.granted(2, 200);
  t.sealed(2);  // lines 5, 6
  t.fence(1);   // lines 7, 8
  expect_named(t, 7, {5, 7});
}

TEST(GuardHistory, NamesAStaleAccept) {
  Tale t;
  t.granted(1, 0);
  t.granted(2, 200);
  t.sealed(2);
  t.wrote(1, 1, "a");
  expect_named(t, 8, {5, 7});
}

TEST(GuardHistory, NamesAStaleWriteInWhatStandsAtTheTarget) {
  Tale t;
  t.granted(1, 0);
  t.granted(2, 200);
  t.at_target(verbs::kWrite, 2, Phase::Info, 0, "b");
  t.at_target(verbs::kWrite, 1, Phase::Info, 0, "a");
  t.landed(2, 1, "b");
  t.landed(1, 2, "a");
  expect_named(t, 8, {9, 11});
}

TEST(GuardHistory, NamesAReadBeforeTheSeal) {
  Tale t;
  t.granted(1, 0);
  t.read(1, 0);
  t.sealed(1);
  t.wrote(1, 1, "a");
  expect_named(t, 9, {3, 7});
}

TEST(GuardHistory, NamesAForgedToken) {
  Tale t;
  t.granted(1, 0);
  t.wrote(7, 1, "a");
  expect_named(t, 10, {3});
}

TEST(GuardHistory, NamesATokenInAnothersHands) {
  Tale t;
  t.granted(1, 0);
  t.client = "thief";
  t.wrote(1, 1, "a");
  expect_named(t, 10, {3});
}

TEST(GuardHistory, NamesASecondCompletion) {
  Tale t;
  t.named(verbs::kClaim, "item", 1);
  t.named(verbs::kComplete, "item", 1);
  t.named(verbs::kComplete, "item", 1);
  expect_named(t, 11, {3, 5});
}

TEST(GuardHistory, NamesACompletionUnderAnOldEpoch) {
  Tale t;
  t.named(verbs::kClaim, "item", 1);
  t.named(verbs::kClaim, "item", 2);
  t.named(verbs::kComplete, "item", 1);
  expect_named(t, 11, {3, 5});
}

TEST(GuardHistory, NamesAKeyThatTookEffectTwice) {
  Tale t;
  t.granted(1, 0);
  t.wrote(1, 1, "a");
  t.wrote(1, 2, "a");
  expect_named(t, 11, {3, 5});
}

TEST(GuardHistory, NamesAnAcknowledgedWriteThatIsGone) {
  Tale t;
  t.granted(1, 0);
  t.wrote(1, 0, "a");
  t.wrote(1, 0, "b");
  t.landed(1, 1, "b");
  expect_named(t, 12, {3});
}

TEST(GuardHistory, NamesTwoWritesOfOneVersionAndAMissingOne) {
  Tale fork;
  fork.granted(1, 0);
  fork.wrote(1, 1, "a");
  fork.wrote(1, 1, "b");
  expect_named(fork, 12, {3, 5});
  Tale gap;
  gap.granted(1, 0);
  gap.at_target(verbs::kWrite, 1, Phase::Info, 0, "b");
  gap.landed(1, 2, "b");
  expect_named(gap, 12, {5});
}

TEST(GuardHistory, NamesARefusedWriteThatLanded) {
  Tale t;
  t.granted(1, 0);
  t.fenced(1, "a");
  t.landed(1, 1, "a");
  expect_named(t, 13, {3, 5});
}

TEST(GuardHistory, NamesATokenThatWasFencedAndAcceptedAgain) {
  Tale t;
  t.granted(1, 0);
  t.fenced(1, "a");
  t.wrote(1, 1, "b");
  expect_named(t, 14, {3, 5});
}

TEST(GuardHistory, NamesAReadOfWhatNobodyWrote) {
  Tale t;
  t.granted(1, 0);
  t.sealed(1);
  t.read(1, 1, "ghost");
  expect_named(t, 15, {5});
}

TEST(GuardHistory, NamesATargetThatWentBack) {
  Tale t;
  t.granted(1, 0);
  t.sealed(1);
  t.wrote(1, 1, "a");
  t.wrote(1, 2, "b");
  t.read(1, 1, "a");
  expect_named(t, 15, {7, 9});
}

TEST(GuardHistory, NamesASlotWithTwoEndsTwoStartsOrNone) {
  Tale ends;
  ends.named(verbs::kSlot, "12:00", 1, "started");
  ends.named(verbs::kSlot, "12:00", 1, "completed");
  ends.named(verbs::kSlot, "12:00", 1, "failed");
  expect_named(ends, 16, {3, 5});
  Tale starts;
  starts.named(verbs::kSlot, "12:00", 1, "started");
  starts.named(verbs::kSlot, "12:00", 1, "started");
  starts.named(verbs::kSlot, "12:00", 1, "completed");
  expect_named(starts, 16, {1, 3});
  Tale none;
  none.named(verbs::kDue, "12:00", 0);
  expect_named(none, 16, {1});
}

// What no single rule sees: a check that says "yours" after the lease was let go, an answer from
// the past.
TEST(OrderSearch, NamesAnAnswerThatFitsInNoOrder) {
  Tale t;
  t.granted(1, 0);
  t.released(1, 10);
  t.end(t.begin(verbs::kCheck, 1), Phase::Ok, std::nullopt);
  expect_named(t, 17, {5});
  Tale late;
  late.granted(1, 0);
  late.lost(verbs::kRenew, 1, "superseded");
  expect_named(late, 17, {3});
}

TEST(OrderSearch, LetsOperationsThatOverlapHappenInEitherOrder) {
  Tale t;
  t.granted(1, 0);
  const HistoryEvent check = t.begin(verbs::kCheck, 1);
  t.released(1, 10);
  t.end(check, Phase::Ok, std::nullopt);
  EXPECT_EQ(t.broken(), Names{}) << check_history(t.lines).text();
}

TEST(OrderSearch, ForksAtUnknownOutcomes) {
  Tale t;
  t.granted(1, 0);
  t.unknown(verbs::kRelease, 1);
  t.refused(1);      // not yet
  t.granted(2, 20);  // it has come
  t.unknown(verbs::kAcquire);
  t.unknown(verbs::kAcquire);
  t.lost(verbs::kRenew, 2, "expired");
  t.refused(3);        // one of the two was granted 3
  t.granted(5, 1000);  // the other 4
  EXPECT_EQ(t.broken(), Names{}) << check_history(t.lines).text();
}

TEST(OrderSearch, CannotExplainMoreTokensThanWereAskedFor) {
  Tale t;
  t.granted(1, 0);
  t.unknown(verbs::kAcquire);
  t.refused(3);  // who?
  expect_named(t, 17, {5});
}

}  // namespace
}  // namespace stint::test
