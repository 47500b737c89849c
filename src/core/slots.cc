#include "core/slots.h"

#include <algorithm>

#include "core/slot_parts.h"

namespace stint::core {
namespace {

using std::chrono::sys_seconds;

// A slot that is started within this time was not missed.
constexpr Millis kOnTime{30'000};
constexpr std::size_t kMostByHand = 20;  // of what is due: the schedule's own must find room
constexpr int kMostCrashes = 2;

// The lease of the active slot is gone, and nobody has said how it ended.
void settle_active(JobDecision& d, const JobRule& rule, const JobSight& sight) {
  Job& job = d.after;
  if (!job.active || sight.active != JobSight::Lease::Gone) return;
  d.changed = true;
  ActiveSlot active = *job.active;
  clear_active(job);
  job.due_by.clear();
  if (active.state == SlotState::Claimed) {
    add_due(job, active.slot);  // nothing was started: anybody claims it again
    return;
  }
  EndedSlot end = ended_active(active, SlotState::Lost, sight.now);
  end.cause = "the lease ran out and nobody said how it ended";
  ++active.slot.crashes;
  if (active.slot.crashes >= kMostCrashes) {
    end.state = SlotState::Quarantined;
    end.cause = "lost together with its scheduler twice";
    d.ended.push_back(std::move(end));
  } else if (try_again(job, active.slot, rule, sight.now)) {
    d.retried.push_back(std::move(end));
  } else {
    d.ended.push_back(std::move(end));
  }
}

struct Missed {
  sys_seconds after;
  sys_seconds until;
  CronTime newest;
};

std::optional<SlotRange> range_of(const CronExpression& expression, const Zone& zone,
                                  sys_seconds after, sys_seconds until, SlotState reason) {
  if (until <= after) return std::nullopt;
  const auto first = next_time(expression, zone, after, Bound::Exclusive);
  if (!first || first->instant > until) return std::nullopt;
  const auto last = previous_time(expression, zone, until, Bound::Inclusive);
  return SlotRange{.from = wall_of(first->instant),
                   .to = wall_of(last->instant),
                   .count = count_times(expression, zone, after, until),
                   .reason = reason};
}

std::optional<SlotRange> range_of(const JobRule& rule, sys_seconds after, sys_seconds until,
                                  SlotState reason) {
  return range_of(rule.expression, rule.zone, after, until, reason);
}

void drop(JobDecision& d, std::optional<SlotRange> range) {
  if (range) d.dropped.push_back(*range);
}

void pass_paused(JobDecision& d, const JobRule& rule, const Missed& missed, WallTime now) {
  Job& job = d.after;
  auto range = range_of(rule, missed.after, missed.until, SlotState::SkippedPaused);
  if (range && job.pause) {
    range->from = job.pause->from;
    range->count += job.pause->count;
  }
  job.pause = range;
  drop(d, range);
  for (const Slot& slot : job.due) {
    if (!slot.manual)
      d.ended.push_back({.slot = slot,
                         .state = SlotState::SkippedPaused,
                         .owner = {},
                         .resource = {},
                         .token = {},
                         .ended_at = now});
  }
  std::erase_if(job.due, [](const Slot& slot) { return !slot.manual; });
}

// The newest that may run, oldest first; what lies before them is dropped.
std::vector<Slot> choose(JobDecision& d, const JobRule& rule, const Missed& missed, WallTime now) {
  const bool on_time = now - wall_of(missed.newest.instant) <= kOnTime;
  const std::size_t most =
      std::max<std::size_t>(std::min(rule.max_backfill, kMostBackfill), on_time ? 1 : 0);
  sys_seconds late = missed.after;  // up to here nothing may start any more
  if (rule.start_deadline) {
    const sys_seconds limit(
        std::chrono::ceil<std::chrono::seconds>((now - *rule.start_deadline).time_since_epoch()));
    late = std::clamp(limit - std::chrono::seconds(1), missed.after, missed.until);
  }
  std::vector<Slot> chosen;
  std::optional<CronTime> at = missed.newest;
  while (at && at->instant > late && chosen.size() < most) {
    chosen.push_back({.at = wall_of(at->instant),
                      .nominal = at->nominal,
                      .backfill = !(chosen.empty() && on_time)});
    at = previous_time(rule.expression, rule.zone, at->instant, Bound::Exclusive);
  }
  std::ranges::reverse(chosen);
  const sys_seconds oldest =
      chosen.empty() ? missed.until + std::chrono::seconds(1) : whole_seconds(chosen.front().at);
  drop(d, range_of(rule, missed.after, std::min(late, oldest - std::chrono::seconds(1)),
                   SlotState::SkippedLate));
  drop(d, range_of(rule, late, oldest - std::chrono::seconds(1), SlotState::SkippedStale));
  return chosen;
}

bool counts(const Slot& slot, const JobRule& rule) {
  if (slot.manual || slot.attempt > 1) return false;
  return slot.backfill || !rule.waits;
}

// The cap holds for what an earlier decision left as well.
void keep_newest(JobDecision& d, const JobRule& rule, const JobSight& sight, std::size_t most) {
  Job& job = d.after;
  auto open = static_cast<std::size_t>(
      std::ranges::count_if(job.due, [&](const Slot& slot) { return counts(slot, rule); }));
  for (auto slot = job.due.begin(); slot != job.due.end() && open > most;) {
    if (!counts(*slot, rule)) {
      ++slot;
      continue;
    }
    d.ended.push_back({.slot = *slot,
                       .state = sight.held_back ? SlotState::SkippedLimit : SlotState::SkippedStale,
                       .owner = {},
                       .resource = {},
                       .token = {},
                       .ended_at = sight.now});
    slot = job.due.erase(slot);
    --open;
  }
}

void decide_missed(JobDecision& d, const JobRule& rule, const JobSight& sight) {
  Job& job = d.after;
  const sys_seconds after = whole_seconds(job.cursor);
  const sys_seconds until = whole_seconds(sight.now);
  if (until <= after) return;
  const auto newest = previous_time(rule.expression, rule.zone, until, Bound::Inclusive);
  if (!newest || newest->instant <= after) return;
  const Missed missed{after, until, *newest};
  d.changed = true;
  job.cursor = wall_of(newest->instant);
  job.decided_at = sight.now;
  if (job.paused) {
    pass_paused(d, rule, missed, sight.now);
    return;
  }
  std::vector<Slot> chosen = choose(d, rule, missed, sight.now);
  if (job.active && sight.active == JobSight::Lease::Live && !rule.waits) {
    for (const Slot& slot : chosen) {
      EndedSlot end = ended_active(*job.active, SlotState::SkippedOverlap, sight.now);
      end.slot = slot;
      end.started_at.reset();
      d.ended.push_back(std::move(end));
    }
    return;
  }
  const std::size_t most =
      std::max<std::size_t>(chosen.empty() ? 0 : 1, std::min(rule.max_backfill, kMostBackfill));
  for (Slot& slot : chosen) {
    if (job.due.size() < kMostDue) {
      add_due(job, slot);
    } else {
      d.ended.push_back({.slot = slot,
                         .state = SlotState::SkippedStale,
                         .owner = {},
                         .resource = {},
                         .token = {},
                         .ended_at = sight.now});
    }
  }
  keep_newest(d, rule, sight, most);
}

bool may_start(const Job& job) {
  return !job.active &&
         std::ranges::any_of(job.due, [&](const Slot& slot) { return may_go(job, slot); });
}

// One scheduler is to start what is due; the others leave it alone as long as the timer runs.
void assign(JobDecision& d, const JobSight& sight) {
  Job& job = d.after;
  if (!may_start(job)) return;
  const bool mine = job.due_by == sight.scheduler;
  if (!mine && sight.assigned && !job.due_by.empty()) return;
  d.mine = true;
  if (mine && sight.assigned && !d.changed) return;
  job.due_by = sight.scheduler;
  d.assign = true;
  d.changed = true;
}

void take_schedule(Job& job, const JobRule& rule) {
  job.schedule = rule.schedule;
  job.tz = rule.tz;
  job.digest = rule.digest;
  job.loaded_at = rule.loaded_at;
}

// By schedulers alone, who have the whole rule. The configuration that was loaded last counts: two
// that differ do not write in turns.
void keep_policy(JobDecision& d, const JobRule& rule) {
  std::optional<MissedPolicy>& kept = d.after.policy;
  const bool same = kept && kept->max_backfill == rule.max_backfill &&
                    kept->start_deadline == rule.start_deadline && kept->waits == rule.waits &&
                    kept->retries == rule.retries && kept->backoff == rule.backoff;
  if (same || (kept && rule.loaded_at <= kept->loaded_at)) return;
  kept = MissedPolicy{.max_backfill = rule.max_backfill,
                      .start_deadline = rule.start_deadline,
                      .waits = rule.waits,
                      .retries = rule.retries,
                      .backoff = rule.backoff,
                      .loaded_at = rule.loaded_at};
  d.changed = true;
}

// False: another configuration counts.
bool adopt_rule(JobDecision& d, const std::optional<Job>& before, const JobRule& rule,
                const JobSight& sight) {
  const WallTime now = sight.now;
  Job& job = d.after;
  if (!before) {
    take_schedule(job, rule);
    job.cursor = now;  // a new job never back-fills the past
    job.decided_at = now;
    d.changed = true;
    return true;
  }
  job = *before;
  if (job.digest == rule.digest) return true;
  const bool later = rule.loaded_at > job.loaded_at ||
                     (rule.loaded_at == job.loaded_at && rule.digest > job.digest);
  if (!later) {
    d.config_differs = true;
    return false;
  }
  take_schedule(job, rule);
  // What the old one had until now is not run any more; and not left out of the record.   G9
  if (sight.before) {
    d.outdated = range_of(sight.before->expression, sight.before->zone, whole_seconds(job.cursor),
                          whole_seconds(now),
                          job.paused ? SlotState::SkippedPaused : SlotState::SkippedStale);
    if (d.outdated) d.outdated->cause = "the schedule was changed";
  }
  job.cursor = std::max(job.cursor, now);  // nor does a changed expression
  job.due_by.clear();                      // who was to start it may know only the old one
  job.pause.reset();
  d.changed = true;
  d.schedule_changed = true;
  return true;
}

// All of a decision but the missed slots.
JobDecision settled(const std::optional<Job>& before, const JobRule& rule, const JobSight& sight) {
  JobDecision d;
  if (!adopt_rule(d, before, rule, sight)) return d;
  keep_policy(d, rule);
  if (before) settle_active(d, rule, sight);
  return d;
}

// Too many for one commit: some of those that are due end now. The cursor stays, so that the next
// decision finds the same missed slots, and starts nothing before the last of them has ended.
void end_some(JobDecision& d, const std::vector<EndedSlot>& all) {
  d.more = true;
  for (const EndedSlot& end : all) {
    if (d.ended.size() == kMostEnded) break;
    const auto same = [&](const Slot& slot) {
      return slot.at == end.slot.at && slot.attempt == end.slot.attempt;
    };
    if (std::erase_if(d.after.due, same) == 0) continue;  // not decided yet
    d.ended.push_back(end);
    d.changed = true;
  }
}

void count_rows(JobDecision& d, const std::optional<SlotRange>& pause) {
  d.after.rows += d.ended.size();
  for (const SlotRange& range : d.dropped) {
    const bool grown = pause && pause->from == range.from;
    if (!grown) ++d.after.ranges;
  }
  if (d.outdated) ++d.after.ranges;
}

}  // namespace

JobDecision decide_job(const std::optional<Job>& before, const JobRule& rule,
                       const JobSight& sight) {
  JobDecision d = settled(before, rule, sight);
  if (!before || d.config_differs) return d;
  decide_missed(d, rule, sight);
  if (d.ended.size() > kMostEnded) {
    const std::vector<EndedSlot> all = std::move(d.ended);
    d = settled(before, rule, sight);
    end_some(d, all);
  }
  for (EndedSlot& ended : d.ended) end_as_failed(ended);
  count_rows(d, before->pause);
  if (!d.more) assign(d, sight);
  return d;
}

const Slot* next_due(const Job& job, bool newest_first, WallTime now) {
  if (job.active) return nullptr;
  const Slot* found = nullptr;
  for (const Slot& slot : job.due) {
    const bool ready = (!slot.not_before || *slot.not_before <= now) && may_go(job, slot);
    if (ready && (found == nullptr || newest_first)) found = &slot;
  }
  return found;
}

std::optional<JobDecision> add_slot(const std::optional<Job>& before, const JobRule& rule,
                                    const JobSight& sight, Slot slot) {
  JobDecision d;
  d.config_differs = before && before->digest != rule.digest;
  if (d.config_differs || !adopt_rule(d, before, rule, sight)) return d;
  Job& job = d.after;
  // Before what has run out is settled: that may be this very slot, and its end comes first.   G9
  const auto same = [&](const Slot& other) { return other.at == slot.at; };
  if (std::ranges::any_of(job.due, same) || (job.active && same(job.active->slot))) {
    return std::nullopt;
  }
  const auto by_hand = std::ranges::count_if(job.due, &Slot::manual);
  if (job.due.size() >= kMostDue || static_cast<std::size_t>(by_hand) >= kMostByHand) {
    d.full = true;
    return d;
  }
  // Who only asks for a run has no say in what becomes of the last one.
  if (!sight.scheduler.empty()) settle_active(d, rule, sight);
  const auto fires =
      next_time(rule.expression, rule.zone, whole_seconds(slot.at), Bound::Inclusive);
  if (slot.at > job.cursor && fires && slot.at == wall_of(fires->instant)) {
    const sys_seconds before_it = whole_seconds(slot.at) - std::chrono::seconds(1);
    drop(d, range_of(rule, whole_seconds(job.cursor), before_it,
                     job.paused ? SlotState::SkippedPaused : SlotState::SkippedStale));
    job.cursor = slot.at;
    job.pause.reset();
  }
  count_rows(d, std::nullopt);
  slot.manual = true;
  add_due(job, slot);
  d.changed = true;
  if (sight.scheduler.empty()) {
    job.due_by.clear();  // for anybody
    return d;
  }
  job.due_by = sight.scheduler;
  d.assign = true;
  d.mine = true;
  return d;
}

}  // namespace stint::core
