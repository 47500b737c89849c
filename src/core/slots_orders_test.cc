// The law of slots where people meddle: orders by hand, pauses, changed schedules, further
// attempts.
#include <gtest/gtest.h>

#include "core/slots_played.h"

namespace stint::core::played {
namespace {

TEST(SlotOrders, AnInstantThatIsNotInTheScheduleLeavesTheCursorAlone) {
  const JobRule job = rule("*/15 * * * *", 5);
  const Job before = fresh(job, kNoon);
  const auto added =
      add_slot(before, job, at(kNoon + hours(1)), {.at = wall_of(kNoon + hours(1) - seconds(7))});
  ASSERT_TRUE(added);
  EXPECT_EQ(added->after.cursor, before.cursor);
  EXPECT_TRUE(added->dropped.empty());
  EXPECT_EQ(added->after.due.size(), 1U);
}

TEST(SlotOrders, AnOrderByHandNeverChangesTheScheduleOfAKnownJob) {
  const Job before = fresh(rule("* * * * *"), kNoon);
  JobRule other = rule("*/2 * * * *");
  other.loaded_at = wall_of(kNoon + hours(9));
  const auto added = add_slot(before, other, at(kNoon), {.at = wall_of(kNoon)});
  ASSERT_TRUE(added);
  EXPECT_TRUE(added->config_differs);
  EXPECT_FALSE(added->changed);
}

TEST(SlotOrders, OnlySoManyAreAddedByHand) {
  const JobRule job = rule("0 0 1 1 *");
  std::optional<Job> record = fresh(job, kNoon);
  JobSight sight = at(kNoon, Lease::None, "");
  int room = 0;
  while (room < 100) {
    const auto added = add_slot(record, job, sight, {.at = wall_of(kNoon) + Millis(1 + room)});
    ASSERT_TRUE(added);
    if (added->full) break;
    ++room;
    record = added->after;
  }
  EXPECT_EQ(room, 20);
  // The schedule's own still find room.
  const sys_seconds year = std::chrono::sys_days(std::chrono::year(2027) / 1 / 1);
  EXPECT_EQ(decide_job(record, job, at(year)).after.due.size(), 21U);
}

TEST(SlotOrders, APausedJobStartsNothingButWhatIsAskedForByHand) {
  const JobRule job = rule("* * * * *");
  Job due = decide_job(fresh(job, kNoon - minutes(1)), job, at(kNoon)).after;
  const SlotGrip grip = grip_of(due.due.front());
  Job claimed = claim_slot(due, grip).after;
  due.paused = true;
  claimed.paused = true;
  EXPECT_EQ(claim_slot(due, grip).what, What::Gone);
  EXPECT_EQ(start_slot(claimed, grip, wall_of(kNoon)).what, What::Gone);
  // The next decision ends it.
  const JobDecision next = decide_job(due, job, at(kNoon + minutes(1)));
  ASSERT_EQ(next.ended.size(), 1U);
  EXPECT_EQ(next.ended[0].state, SlotState::SkippedPaused);
  due.due.front().manual = true;
  claimed.active->slot.manual = true;
  EXPECT_EQ(claim_slot(due, grip).what, What::Done);
  EXPECT_EQ(start_slot(claimed, grip, wall_of(kNoon)).what, What::Done);
}

TEST(SlotOrders, WhatKeepsAFurtherAttemptFromItsStartIsNoSkip) {
  JobRule job = rule("* * * * *");
  job.retries = 1;
  const Job open = running(job, kNoon);
  const SlotGrip first = grip_of(open.active->slot);
  Job again =
      end_slot(open, first, {.state = SlotState::Failed, .exit_code = 3}, job, wall_of(kNoon))
          .after;
  again.due_by = "a";
  const SlotGrip second = grip_of(again.due.front());
  ASSERT_EQ(second.attempt, 2);
  for (const SlotState why : {SlotState::SkippedHeld, SlotState::SkippedLate}) {
    const SlotStep step = skip_slot(again, second, why, wall_of(kNoon));
    ASSERT_TRUE(step.ended);
    EXPECT_EQ(step.ended->state, SlotState::Failed);
    EXPECT_NE(step.ended->cause.find(word(why)), std::string::npos);
  }
  again.paused = true;
  const JobDecision paused = decide_job(again, job, at(kNoon + minutes(1)));
  ASSERT_EQ(paused.ended.size(), 1U);
  EXPECT_EQ(paused.ended[0].state, SlotState::Failed);
}

TEST(SlotOrders, WhatAChangedScheduleHadUntilThenIsARangeOfItsOwn) {
  const JobRule job = rule("*/15 * * * *");
  const Job before = fresh(job, kNoon);
  JobRule changed = rule("7 * * * *", 10);
  changed.loaded_at = wall_of(kNoon + hours(5));
  JobSight sight = at(kNoon + hours(5));
  sight.before = Cadence{job.expression, job.zone};
  const JobDecision d = decide_job(before, changed, sight);
  ASSERT_TRUE(d.outdated);
  EXPECT_EQ(d.outdated->count, 20U);
  EXPECT_EQ(d.outdated->reason, SlotState::SkippedStale);
  EXPECT_FALSE(d.outdated->cause.empty());
  EXPECT_TRUE(d.after.due.empty());
  EXPECT_EQ(d.after.ranges, 1U);
  // Ten years on it costs no more.
  sight.now = wall_of(kNoon + hours(24) * 3650);
  EXPECT_EQ(decide_job(before, changed, sight).outdated->count, 3650ULL * 96);
}

}  // namespace
}  // namespace stint::core::played
