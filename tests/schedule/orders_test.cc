// What is asked for by hand, beside what schedulers do: each attempt of a slot starts at most once,
// each slot ends in exactly one state.
#include <gtest/gtest.h>

#include "base/text.h"
#include "store/shared_store.h"
#include "tests/schedule/desk.h"

namespace stint::test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using Added = api::SlotAdded::What;
using Strings = std::vector<std::string>;

// A store where something happens right after the n-th read.
class AfterRead final : public store::SharedStore {
 public:
  AfterRead(store::Store& inner, int nth, std::function<void()> what)
      : SharedStore({std::shared_ptr<store::Store>(), &inner}), nth_(nth), what_(std::move(what)) {}
  Result<store::Reading> read(const std::vector<std::string>& keys) override {
    auto reading = SharedStore::read(keys);
    if (--nth_ == 0) what_();
    return reading;
  }

 private:
  int nth_;
  std::function<void()> what_;
};

class OrdersByHand : public ::testing::Test {
 protected:
  Launched by_hand(core::Slot slot, const std::string& who) const {
    return {job_, slot, who, desk_.clock.mono()};
  }
  core::Slot slot_at(WallTime at) const { return {.at = at}; }
  WallTime minute() const {
    return WallTime(std::chrono::floor<minutes>(desk_.clock.wall().time_since_epoch()));
  }
  Added add(const core::Slot& slot, const std::string& who) {
    auto added = desk_.slots.add(job_.rule, slot, who);
    EXPECT_TRUE(added.has_value()) << added.error().message;
    return added ? added->what : Added::Open;
  }
  void run_by_hand(const core::Slot& slot, const std::string& who) {
    ASSERT_EQ(add(slot, who), Added::Added);
    auto proof = desk_.start(by_hand(slot, who));
    ASSERT_TRUE(proof.has_value()) << proof.error().message;
    desk_.end(*proof, job_);
  }

  Desk desk_;
  schedule::JobConfig job_ = job_of("j", "* * * * *");
};

// EVIDENCE-OF: G9
TEST_F(OrdersByHand, ASlotThatRanWhileAnotherWasHeldUpIsNotRunAgain) {
  for (int nth = 1; nth <= 3; ++nth) {
    desk_.clock.advance(minutes(1));
    const core::Slot slot = slot_at(minute());
    AfterRead held_up(desk_.store, nth, [&] { run_by_hand(slot, "second"); });
    service::SlotService slots(held_up, desk_.ledger, desk_.clock);
    auto added = slots.add(job_.rule, slot, "first");
    ASSERT_TRUE(added.has_value()) << added.error().message;
    // The third comes after the commit: nothing was in between.
    EXPECT_EQ(added->what, nth < 3 ? Added::Ended : Added::Added) << nth;
  }
  EXPECT_EQ(desk_.states("j"), (Strings{"ran", "ran"}));
}

// EVIDENCE-OF: G9
TEST_F(OrdersByHand, ASlotWhoseRunnerDiedIsNotStartedAgainAsTheSameAttempt) {
  const core::Slot slot = slot_at(minute());
  ASSERT_EQ(add(slot, "a"), Added::Added);
  ASSERT_TRUE(desk_.start(by_hand(slot, "a")).has_value());
  desk_.clock.advance(minutes(2));  // its lease has run out, and nobody has settled it
  EXPECT_EQ(add(slot, "b"), Added::Open);
  ASSERT_TRUE(desk_.slots.decide({{.rule = &job_.rule}}, "b").front().has_value());
  EXPECT_EQ(add(slot, "b"), Added::Ended);
  EXPECT_EQ(desk_.slots.history("j", 10).value().ended.back().state, core::SlotState::Lost);
}

// EVIDENCE-OF: G9
TEST_F(OrdersByHand, ADroppedSlotHasEndedAndIsNotRunAsWell) {
  auto a = desk_.scheduler("a", {job_});
  desk_.run({a.get()}, seconds(1));
  desk_.clock.advance(minutes(10));
  desk_.run({a.get()}, seconds(1));
  ASSERT_EQ(desk_.states("j"), (Strings{"skipped_stale*9"}));
  const api::RangeRow row = desk_.slots.history("j", 1).value().ranges.front();
  for (const WallTime at : {row.range.from, row.range.from + minutes(3), row.range.to}) {
    auto added = desk_.slots.add(job_.rule, slot_at(at), "b");
    ASSERT_TRUE(added.has_value()) << added.error().message;
    EXPECT_EQ(added->what, Added::Ended);
    EXPECT_EQ(added->ended->state, core::SlotState::SkippedStale);
  }
  // Between them, and before the first one, nothing has ended.
  EXPECT_EQ(add(slot_at(row.range.from + seconds(7)), "b"), Added::Added);
  EXPECT_EQ(add(slot_at(row.range.from - minutes(1)), "b"), Added::Added);
}

TEST_F(OrdersByHand, ASlotThatIsNotDueYetIsRefusedAndMovesNothing) {
  auto a = desk_.scheduler("a", {job_});
  desk_.run({a.get()}, seconds(1));
  const core::Job before = desk_.record("j");
  const auto added = desk_.slots.add(job_.rule, slot_at(desk_.clock.wall() + seconds(55)), "b");
  ASSERT_FALSE(added.has_value());
  EXPECT_EQ(added.error().code, Code::Invalid);
  EXPECT_EQ(desk_.record("j").cursor, before.cursor);
}

TEST_F(OrdersByHand, TooManyAreRefusedAndTheJobGoesOn) {
  int taken = 0;
  while (taken < 100 && desk_.slots.add(job_.rule, std::nullopt, "").has_value()) {
    desk_.clock.advance(Millis(3));
    ++taken;
  }
  EXPECT_EQ(taken, 20);
  const auto refused = desk_.slots.add(job_.rule, std::nullopt, "");
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("have a scheduler start them"), std::string::npos);
  auto a = desk_.scheduler("a", {job_});
  for (int i = 0; i < taken; ++i) {
    desk_.run({a.get()}, seconds(3));
    ASSERT_EQ(desk_.launched.size(), static_cast<std::size_t>(i + 1));
    desk_.complete(*a, desk_.launched.back());
  }
}

TEST_F(OrdersByHand, OfAnotherFileLeaveTheScheduleAlone) {
  auto a = desk_.scheduler("a", {job_});
  desk_.run({a.get()}, seconds(1));
  core::JobRule other = job_of("j", "*/7 * * * *").rule;
  other.loaded_at = desk_.clock.wall() + hours(1);
  const auto added = desk_.slots.add(other, slot_at(minute()), "b");
  ASSERT_TRUE(added.has_value());
  EXPECT_EQ(added->what, Added::ConfigDiffers);
  ASSERT_TRUE(desk_.slots.pause(other, "ann").has_value());
  EXPECT_FALSE(desk_.slots.resume(other, "ann").has_value());
  ASSERT_TRUE(desk_.slots.resume(job_.rule, "ann").has_value());
  EXPECT_EQ(desk_.record("j").schedule, "* * * * *");
  desk_.run({a.get()}, minutes(1));
  EXPECT_EQ(desk_.launched.size(), 1U);
}

TEST_F(OrdersByHand, APauseHoldsForARunnerThatWaitsForTheResource) {
  job_.rule.waits = true;
  auto a = desk_.scheduler("a", {job_});
  desk_.run({a.get()}, minutes(1));
  ASSERT_EQ(desk_.launched.size(), 1U);
  ASSERT_TRUE(desk_.slots.pause(job_.rule, "ann").has_value());
  EXPECT_FALSE(desk_.claim(desk_.launched[0]).has_value());
  a->finished("j");
  desk_.run({a.get()}, minutes(1));
  EXPECT_EQ(desk_.launched.size(), 1U);
  EXPECT_EQ(desk_.states("j"), (Strings{"skipped_paused", "skipped_paused*1"}));
}

// EVIDENCE-OF: G9
TEST_F(OrdersByHand, ARunOfAJobThatIsInNoFileAnyMoreIsSettled) {
  for (const int retries : {0, 1}) {
    Desk desk;
    schedule::JobConfig job = job_of("j", "* * * * *");
    job.rule.retries = retries;
    auto a = desk.scheduler("a", {job});
    desk.run({a.get()}, minutes(1));
    ASSERT_TRUE(desk.start(desk.launched[0]).has_value());
    a.reset();  // dead, with its run; and the job is taken out of the file
    auto b = desk.scheduler("b", {job_of("other", "0 0 1 1 *")});
    desk.run({b.get()}, minutes(5));
    EXPECT_FALSE(desk.record("j").active.has_value());
    EXPECT_EQ(desk.states("j"), retries == 0 ? Strings{"lost"} : Strings{});
    EXPECT_EQ(desk.record("j").due.size(), static_cast<std::size_t>(retries));
    EXPECT_EQ(desk.launched.size(), 1U);
  }
}

// Records of a job's past, as one that only skips leaves them.
TEST_F(OrdersByHand, WhatOnlySkipsLeavesNoEndlessRecord) {
  job_.rule.max_backfill = 0;
  auto a = desk_.scheduler("a", {job_});
  desk_.run({a.get()}, seconds(1));
  for (int i = 0; i < 1100; ++i) {  // each outage leaves a range
    desk_.clock.advance(minutes(3) + seconds(40));
    ASSERT_TRUE(desk_.slots.decide({{.rule = &job_.rule}}, "a").front().has_value());
  }
  const auto ranges = desk_.slots.history("j", 5000).value().ranges;
  EXPECT_LE(ranges.size(), 1041U);
  EXPECT_GE(ranges.size(), 1000U);
  EXPECT_EQ(desk_.record("j").ranges, ranges.size());
  EXPECT_GT(desk_.record("j").forgotten, WallTime::min());
}

TEST_F(OrdersByHand, WhatIsOnlySkippedSlotBySlotLeavesNoEndlessRecordEither) {
  ASSERT_TRUE(desk_.slots.decide({{.rule = &job_.rule}}, "a").front().has_value());
  for (int i = 0; i < 10'100; ++i) {
    desk_.clock.advance(minutes(1));
    const auto decided = desk_.slots.decide({{.rule = &job_.rule}}, "a");
    ASSERT_TRUE(decided.front() && decided.front()->mine);
    api::SlotSkip skip{.job = "j",
                       .at = decided.front()->job.due.front().at,
                       .attempt = 1,
                       .scheduler = "a",
                       .why = core::SlotState::SkippedHeld,
                       .by = {}};
    ASSERT_TRUE(desk_.slots.skip(skip).has_value());
  }
  const auto ended = desk_.slots.history("j", 20'000).value().ended;
  EXPECT_LE(ended.size(), 10'041U);
  EXPECT_GE(ended.size(), 10'000U);
}

}  // namespace
}  // namespace stint::test
