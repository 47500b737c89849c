// The law of slots: every step in every state by enumeration, and decisions against a walk over
// every second.
#include "core/slots.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "base/text.h"
#include "core/slots_played.h"

namespace stint::core::played {
namespace {

TEST(Slots, ANewJobNeverBackFills) {
  const JobRule job = rule("* * * * *", 10);
  const JobDecision d = decide_job(std::nullopt, job, at(kNoon));
  EXPECT_TRUE(d.changed);
  EXPECT_TRUE(d.after.due.empty());
  EXPECT_EQ(d.after.cursor, wall_of(kNoon));
}

TEST(Slots, AChangedExpressionNeverBackFills) {
  JobRule job = rule("* * * * *", 10);
  const Job before = fresh(job, kNoon);
  JobRule changed = rule("*/2 * * * *", 10);
  changed.loaded_at = wall_of(kNoon + hours(5));
  const JobDecision d = decide_job(before, changed, at(kNoon + hours(5)));
  EXPECT_TRUE(d.schedule_changed);
  EXPECT_TRUE(d.after.due.empty());
  EXPECT_TRUE(d.dropped.empty());
  EXPECT_EQ(d.after.cursor, wall_of(kNoon + hours(5)));
}

// Loaded where the clock is behind: what the others have decided is not decided again.
TEST(Slots, AChangedExpressionNeverSetsTheCursorBack) {
  const Job before = fresh(rule("* * * * *"), kNoon);
  JobRule changed = rule("*/2 * * * *", 10);
  changed.loaded_at = wall_of(kNoon);
  const JobDecision d = decide_job(before, changed, at(kNoon - hours(1)));
  EXPECT_TRUE(d.schedule_changed);
  EXPECT_EQ(d.after.cursor, wall_of(kNoon));
  const JobDecision next = decide_job(d.after, changed, at(kNoon));
  EXPECT_TRUE(next.after.due.empty());
  EXPECT_TRUE(next.ended.empty());
}

TEST(Slots, TheConfigurationLoadedLastCounts) {
  JobRule early = rule("* * * * *");
  JobRule late = rule("*/2 * * * *");
  late.loaded_at = wall_of(kNoon);
  const Job record = fresh(late, kNoon);
  const JobDecision d = decide_job(record, early, at(kNoon + hours(1)));
  EXPECT_TRUE(d.config_differs);
  EXPECT_FALSE(d.changed);
  // Loaded anew, the other one wins.
  early.loaded_at = wall_of(kNoon + hours(1));
  EXPECT_TRUE(decide_job(record, early, at(kNoon + hours(1))).schedule_changed);
}

// Kept for who explains an outage without the configuration; schedulers that differ do not write in
// turns.
TEST(Slots, HowMissedOnesAreTreatedIsKeptOfTheConfigurationLoadedLast) {
  JobRule early = rule("* * * * *", 3);
  early.start_deadline = Millis(5000);
  early.loaded_at = wall_of(kNoon);
  const Job record = fresh(early, kNoon);
  ASSERT_TRUE(record.policy.has_value());
  EXPECT_EQ(record.policy->max_backfill, 3U);
  EXPECT_EQ(record.policy->start_deadline, Millis(5000));
  EXPECT_FALSE(decide_job(record, early, at(kNoon)).changed);

  JobRule late = rule("* * * * *", 7);
  late.waits = true;
  late.loaded_at = wall_of(kNoon + seconds(1));
  const JobDecision taken = decide_job(record, late, at(kNoon));
  EXPECT_TRUE(taken.changed);
  EXPECT_EQ(taken.after.policy->max_backfill, 7U);
  EXPECT_TRUE(taken.after.policy->waits);
  const JobDecision other = decide_job(taken.after, early, at(kNoon));
  EXPECT_FALSE(other.changed);
  EXPECT_EQ(other.after.policy->max_backfill, 7U);

  // An order by hand knows the schedule alone: it tells nothing of this.
  Job old = record;
  old.policy.reset();
  const auto added = add_slot(old, rule("* * * * *"), at(kNoon), {.at = wall_of(kNoon)});
  ASSERT_TRUE(added.has_value());
  EXPECT_FALSE(added->after.policy.has_value());
}

TEST(Slots, OfTheMissedOnesTheNewestRunAndTheOthersAreARange) {
  const JobRule job = rule("*/15 * * * *", 3);
  const JobDecision d = decide_job(fresh(job, kNoon), job, at(kNoon + hours(10) + minutes(12)));
  ASSERT_EQ(d.after.due.size(), 3U);
  EXPECT_EQ(d.after.due[0].at, wall_of(kNoon + hours(9) + minutes(30)));
  EXPECT_EQ(d.after.due[2].at, wall_of(kNoon + hours(10)));
  EXPECT_TRUE(d.after.due[2].backfill);
  ASSERT_EQ(d.dropped.size(), 1U);
  EXPECT_EQ(d.dropped[0].from, wall_of(kNoon + minutes(15)));
  EXPECT_EQ(d.dropped[0].to, wall_of(kNoon + hours(9) + minutes(15)));
  EXPECT_EQ(d.dropped[0].count, 37U);
  EXPECT_EQ(d.dropped[0].reason, SlotState::SkippedStale);
  EXPECT_TRUE(d.mine);
  EXPECT_TRUE(d.assign);
}

TEST(Slots, WithoutBackfillOnlyTheOneThatIsOnTimeRuns) {
  const JobRule job = rule("*/15 * * * *", 0);
  const Job before = fresh(job, kNoon);
  EXPECT_EQ(decide_job(before, job, at(kNoon + hours(1))).after.due.size(), 1U);
  const JobDecision late = decide_job(before, job, at(kNoon + hours(1) + minutes(5)));
  EXPECT_TRUE(late.after.due.empty());
  ASSERT_EQ(late.dropped.size(), 1U);
  EXPECT_EQ(late.dropped[0].count, 4U);
}

TEST(Slots, BeyondTheStartDeadlineTheyAreLate) {
  JobRule job = rule("*/15 * * * *", 3);
  job.start_deadline = minutes(20);
  const JobDecision d = decide_job(fresh(job, kNoon), job, at(kNoon + hours(2) + minutes(1)));
  ASSERT_EQ(d.after.due.size(), 2U);
  ASSERT_EQ(d.dropped.size(), 1U);
  EXPECT_EQ(d.dropped[0].reason, SlotState::SkippedLate);
  EXPECT_EQ(d.dropped[0].count, 6U);
}

TEST(Slots, TheCapHoldsForWhatAnEarlierDecisionLeft) {
  const JobRule job = rule("* * * * *", 2);
  const Job first = decide_job(fresh(job, kNoon), job, at(kNoon + hours(1))).after;
  ASSERT_EQ(first.due.size(), 2U);
  JobSight sight = at(kNoon + hours(1) + minutes(2), Lease::None, "b");
  const JobDecision stale = decide_job(first, job, sight);
  EXPECT_EQ(stale.after.due.size(), 2U);
  ASSERT_EQ(stale.ended.size(), 2U);
  EXPECT_EQ(stale.ended[0].state, SlotState::SkippedStale);
  sight.held_back = true;
  EXPECT_EQ(decide_job(first, job, sight).ended[0].state, SlotState::SkippedLimit);
}

TEST(Slots, OneSchedulerStartsThemWhileItsTimerRuns) {
  const JobRule job = rule("* * * * *");
  const Job first = decide_job(fresh(job, kNoon), job, at(kNoon + minutes(1))).after;
  JobSight other = at(kNoon + minutes(1), Lease::None, "b");
  other.assigned = true;
  EXPECT_FALSE(decide_job(first, job, other).mine);
  EXPECT_FALSE(decide_job(first, job, other).changed);
  other.assigned = false;  // the timer has fired: it may be dead
  const JobDecision taken = decide_job(first, job, other);
  EXPECT_TRUE(taken.mine);
  EXPECT_EQ(taken.after.due_by, "b");
  // Who was slow finds that it is no longer its own.
  EXPECT_EQ(claim_slot(taken.after, grip_of(first.due.front())).what, What::Gone);
}

TEST(Slots, TheOwnPreviousRunIsNeverOvertaken) {
  const JobRule job = rule("* * * * *");
  const Job before = running(job, kNoon);
  const JobDecision d = decide_job(before, job, at(kNoon + minutes(1), Lease::Live, "b"));
  EXPECT_TRUE(d.after.due.empty());
  ASSERT_EQ(d.ended.size(), 1U);
  EXPECT_EQ(d.ended[0].state, SlotState::SkippedOverlap);
  EXPECT_EQ(d.ended[0].owner.text(), "host");
  EXPECT_EQ(d.ended[0].token, Token(7));
  EXPECT_EQ(d.ended[0].slot.at, wall_of(kNoon + minutes(1)));
}

TEST(Slots, WhoWaitsIsDueBehindThePreviousRun) {
  JobRule job = rule("* * * * *");
  job.waits = true;
  const Job before = running(job, kNoon);
  Job after = decide_job(before, job, at(kNoon + minutes(1), Lease::Live)).after;
  after = decide_job(after, job, at(kNoon + minutes(2), Lease::Live)).after;
  EXPECT_EQ(after.due.size(), 2U);
  EXPECT_EQ(next_due(after, false, wall_of(kNoon + hours(1))), nullptr);
}

TEST(Slots, PausedOnesAreOneRangeThatGrows) {
  const JobRule job = rule("* * * * *", 5);
  Job record = decide_job(fresh(job, kNoon), job, at(kNoon + minutes(1))).after;
  record.paused = true;
  JobDecision d = decide_job(record, job, at(kNoon + minutes(2)));
  EXPECT_TRUE(d.after.due.empty());
  ASSERT_EQ(d.ended.size(), 1U);
  EXPECT_EQ(d.ended[0].state, SlotState::SkippedPaused);
  d = decide_job(d.after, job, at(kNoon + minutes(4)));
  ASSERT_EQ(d.dropped.size(), 1U);
  EXPECT_EQ(d.dropped[0].from, wall_of(kNoon + minutes(2)));
  EXPECT_EQ(d.dropped[0].count, 3U);
  EXPECT_EQ(d.dropped[0].reason, SlotState::SkippedPaused);
}

// EVIDENCE-OF: G9
TEST(Slots, EachStepIsMadeOnceAndOnlyByItsHolder) {
  JobRule job = rule("* * * * *");
  const Job due = decide_job(fresh(job, kNoon - minutes(1)), job, at(kNoon)).after;
  const SlotGrip grip = grip_of(due.due.front());
  const Job claimed = claim_slot(due, grip).after;
  const Job starting = start_slot(claimed, grip, wall_of(kNoon)).after;
  const Job live = run_slot(starting, grip).after;
  const Job ended =
      end_slot(live, grip, {.state = SlotState::Ran, .exit_code = 0}, job, wall_of(kNoon)).after;
  struct Row {
    const Job* job;
    What claim, start, run, back, skip, end;
  };
  const std::vector<Row> table = {
      {&due, What::Done, What::Gone, What::Gone, What::Gone, What::Done, What::Gone},
      {&claimed, What::Before, What::Done, What::Gone, What::Done, What::Gone, What::Done},
      {&starting, What::Gone, What::Before, What::Done, What::Done, What::Gone, What::Done},
      {&live, What::Gone, What::Gone, What::Before, What::Gone, What::Gone, What::Done},
      {&ended, What::Gone, What::Gone, What::Gone, What::Gone, What::Gone, What::Gone},
  };
  const auto steps = [&](const Job& from, const SlotGrip& by) {
    return std::vector<What>{claim_slot(from, by).what,
                             start_slot(from, by, wall_of(kNoon)).what,
                             run_slot(from, by).what,
                             hand_back_slot(from, by).what,
                             skip_slot(from, by, SlotState::SkippedHeld, wall_of(kNoon)).what,
                             end_slot(from, by, {}, job, wall_of(kNoon)).what};
  };
  for (const Row& row : table) {
    EXPECT_EQ(steps(*row.job, grip),
              (std::vector<What>{row.claim, row.start, row.run, row.back, row.skip, row.end}));
    // Another token, another attempt, another slot, another scheduler: never.
    std::vector<SlotGrip> others(4, grip);
    others[0].token = Token(8);
    others[1].attempt = 2;
    others[2].at += minutes(1);
    others[3].resource = "other";
    for (std::size_t i = 0; i < others.size(); ++i) {
      std::vector<What> gone(6, What::Gone);
      const bool unclaimed = row.job == &due && (i == 0 || i == 3);
      if (unclaimed) gone[0] = gone[4] = What::Done;  // no token is known yet
      EXPECT_EQ(steps(*row.job, others[i]), gone) << i;
    }
  }
}

TEST(Slots, AClaimerThatDiedStartedNothing) {
  const JobRule job = rule("* * * * *");
  const Job due = decide_job(fresh(job, kNoon - minutes(1)), job, at(kNoon)).after;
  const Job claimed = claim_slot(due, grip_of(due.due.front())).after;
  const JobDecision d = decide_job(claimed, job, at(kNoon + seconds(5), Lease::Gone, "b"));
  ASSERT_EQ(d.after.due.size(), 1U);
  EXPECT_EQ(d.after.due[0].attempt, 1);
  EXPECT_TRUE(d.ended.empty());
  EXPECT_TRUE(d.mine);
}

// From `starting` on nobody can know.
TEST(Slots, AStarterThatDiedIsLostAndRunsAgainOnlyIfAllowed) {
  JobRule job = rule("0 12 * * *");
  for (const bool started : {false, true}) {
    const Job due = decide_job(fresh(job, kNoon - minutes(1)), job, at(kNoon)).after;
    const SlotGrip grip = grip_of(due.due.front());
    Job open = start_slot(claim_slot(due, grip).after, grip, wall_of(kNoon)).after;
    if (started) open = run_slot(open, grip).after;
    const JobDecision lost = decide_job(open, job, at(kNoon + minutes(5), Lease::Gone));
    ASSERT_EQ(lost.ended.size(), 1U);
    EXPECT_EQ(lost.ended[0].state, SlotState::Lost);
    EXPECT_TRUE(lost.after.due.empty());
    JobRule patient = job;
    patient.retries = 5;
    patient.backoff = minutes(1);
    const JobDecision again = decide_job(open, patient, at(kNoon + minutes(5), Lease::Gone));
    EXPECT_TRUE(again.ended.empty());
    ASSERT_EQ(again.after.due.size(), 1U);
    EXPECT_EQ(again.after.due[0].attempt, 2);
    EXPECT_EQ(next_due(again.after, false, wall_of(kNoon + minutes(5))), nullptr);
    ASSERT_NE(next_due(again.after, false, wall_of(kNoon + minutes(6))), nullptr);
    // And a second time with its scheduler: no further, whatever the retries.
    const SlotGrip second = grip_of(again.after.due.front(), 8);
    const Job dead = start_slot(claim_slot(again.after, second).after, second, {}).after;
    const JobDecision end = decide_job(dead, patient, at(kNoon + minutes(9), Lease::Gone));
    ASSERT_EQ(end.ended.size(), 1U);
    EXPECT_EQ(end.ended[0].state, SlotState::Quarantined);
    EXPECT_TRUE(end.after.due.empty());
  }
}

TEST(Slots, AFailureIsTriedAgainAsOftenAsAllowed) {
  JobRule job = rule("0 12 * * *");
  job.retries = 2;
  job.backoff = minutes(1);
  Job record = decide_job(fresh(job, kNoon - minutes(1)), job, at(kNoon)).after;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_EQ(record.due.size(), 1U);
    record.due_by = "a";
    const SlotGrip grip = grip_of(record.due.front(), static_cast<std::uint64_t>(attempt));
    EXPECT_EQ(grip.attempt, attempt);
    const Job open = start_slot(claim_slot(record, grip).after, grip, wall_of(kNoon)).after;
    const SlotStep end =
        end_slot(open, grip, {.state = SlotState::Failed, .exit_code = 3}, job, wall_of(kNoon));
    EXPECT_EQ(end.again, attempt < 3);
    record = end.after;
  }
  EXPECT_TRUE(record.due.empty());
}

// A clock at 1970 or ten years on costs nothing, and the cursor never goes back.
TEST(Slots, AWrongClockCostsNothing) {
  const JobRule job = rule("* * * * * *", 3);
  const Job before = fresh(job, kNoon);
  const JobDecision past = decide_job(before, job, at(sys_seconds(seconds(0))));
  EXPECT_FALSE(past.changed);
  const JobDecision future = decide_job(before, job, at(kNoon + hours(24) * 3650));
  EXPECT_EQ(future.after.due.size(), 3U);
  ASSERT_EQ(future.dropped.size(), 1U);
  EXPECT_EQ(future.dropped[0].count, 3650ULL * 86'400 - 3);
  const JobDecision back = decide_job(future.after, job, at(kNoon + hours(1)));
  EXPECT_EQ(back.after.cursor, future.after.cursor);
}

TEST(Slots, ASlotByHandDropsWhatLiesBefore) {
  const JobRule job = rule("*/15 * * * *", 5);
  const Job before = fresh(job, kNoon);
  const auto added = add_slot(before, job, at(kNoon + hours(1)), {.at = wall_of(kNoon + hours(1))});
  ASSERT_TRUE(added);
  EXPECT_EQ(added->after.due.size(), 1U);
  ASSERT_EQ(added->dropped.size(), 1U);
  EXPECT_EQ(added->dropped[0].count, 3U);
  EXPECT_FALSE(
      add_slot(added->after, job, at(kNoon + hours(1)), {.at = wall_of(kNoon + hours(1))}));
  // The schedule goes on behind it.
  EXPECT_FALSE(decide_job(added->after, job, at(kNoon + hours(1))).after.due.size() > 1);
}

TEST(Slots, KeysAreTheInstantInUtc) {
  EXPECT_EQ(slot_key("job", wall_of(kNoon)), "job@2026-11-15T12:00:00Z");
  EXPECT_EQ(slot_key("job", wall_of(kNoon) + Millis(7)), "job@2026-11-15T12:00:00.007Z");
}

TEST(Slots, EveryStateHasItsWord) {
  for (int i = 0; i <= static_cast<int>(SlotState::Lost); ++i) {
    const auto state = static_cast<SlotState>(i);
    ASSERT_FALSE(word(state).empty()) << i;
    EXPECT_EQ(parse_slot_state(word(state)), state);
    EXPECT_EQ(has_ended(state), state >= SlotState::Ran);
  }
}

// ---- against a walk over all of them

constexpr const char* kSchedules[] = {
    "* * * * *",        "*/7 * * * *", "30 2 * * *", "0 0 1,15 * *",  "15 1-3 * * *",
    "0 12 * * mon-fri", "@every 45m",  "0 0 LW * *", "5 2,3 * * sun", "59 23 29 2 *"};

Zone berlin() { return {seconds(3600), {}, parse_zone_rule("CET-1CEST,M3.5.0,M10.5.0/3").value()}; }
// Its clock jumps over midnight.
Zone sao_paulo() {
  return {seconds(-10800), {}, parse_zone_rule("<-03>3<-02>,M11.1.0/0,M2.3.0/0").value()};
}

std::vector<WallTime> walk(const JobRule& job, sys_seconds after, sys_seconds until) {
  std::vector<WallTime> out;
  auto t = next_time(job.expression, job.zone, after, Bound::Exclusive);
  while (t && t->instant <= until) {
    out.push_back(wall_of(t->instant));
    t = next_time(job.expression, job.zone, t->instant, Bound::Exclusive);
  }
  return out;
}

TEST(SlotsProperty, CountingAgreesWithWalking) {
  SeededRandom random(20261115);
  for (int round = 0; round < 600; ++round) {
    JobRule job = rule(kSchedules[random.below(std::size(kSchedules))]);
    const std::uint64_t where = random.below(3);
    job.zone = where == 0 ? Zone() : where == 1 ? berlin() : sao_paulo();
    const sys_seconds after = kNoon + minutes(random.below(60ULL * 24 * 400));
    const sys_seconds until = after + seconds(random.below(86'400ULL * 120));
    EXPECT_EQ(count_times(job.expression, job.zone, after, until), walk(job, after, until).size())
        << job.schedule << " zone " << where << " after " << after.time_since_epoch().count()
        << " until " << until.time_since_epoch().count();
  }
}

// Every slot of the schedule is decided exactly once, whatever the times of the decisions, and at
// most max_backfill are chosen at a time.
// EVIDENCE-OF: G9
TEST(SlotsProperty, EverySlotIsAccountedForOnce) {
  SeededRandom random(7);
  for (int round = 0; round < 200; ++round) {
    JobRule job = rule(kSchedules[random.below(std::size(kSchedules))], random.below(5));
    if (random.below(2) == 0) job.zone = berlin();
    if (random.below(3) == 0) job.start_deadline = minutes(1 + random.below(600));
    const sys_seconds start = kNoon + minutes(random.below(60ULL * 24 * 400));
    sys_seconds now = start;
    Job record = fresh(job, start);
    std::map<WallTime, int> seen;
    for (int step = 0; step < 12; ++step) {
      now += minutes(random.below(60ULL * 24 * 3));
      const JobDecision d = decide_job(record, job, at(now));
      EXPECT_GE(d.after.cursor, record.cursor);
      EXPECT_LE(d.after.due.size(), std::max<std::size_t>(job.max_backfill, 1));
      for (const SlotRange& range : d.dropped) {
        const auto all = walk(job, whole_seconds(range.from) - seconds(1), whole_seconds(range.to));
        EXPECT_EQ(all.size(), range.count);
        for (const WallTime t : all) ++seen[t];
      }
      for (const EndedSlot& end : d.ended) ++seen[end.slot.at];
      for (const Slot& slot : d.after.due) ++seen[slot.at];
      record = d.after;
      record.due.clear();  // they have run
    }
    const auto all = walk(job, start, now);
    EXPECT_EQ(seen.size(), all.size()) << job.schedule;
    for (const WallTime t : all) EXPECT_EQ(seen[t], 1) << job.schedule;
  }
}

}  // namespace
}  // namespace stint::core::played
