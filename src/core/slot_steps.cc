// The steps of one slot, each on the record as it was read.   G8 G9
#include <algorithm>

#include "base/text.h"
#include "core/slot_parts.h"

namespace stint::core {
namespace {

constexpr Millis kLongestBackoff = std::chrono::hours(24);

bool holds(const Job& job, const SlotGrip& grip) {
  return job.active && job.active->slot.at == grip.at && job.active->slot.attempt == grip.attempt &&
         job.active->token == grip.token && job.active->resource == grip.resource;
}

std::vector<Slot>::const_iterator find_due(const Job& job, const SlotGrip& grip) {
  return std::ranges::find_if(job.due, [&](const Slot& slot) {
    return slot.at == grip.at && slot.attempt == grip.attempt;
  });
}

void take_due(Job& job, std::ptrdiff_t at) {
  job.due.erase(job.due.begin() + at);
  // Nothing is left of what was assigned: the next slot is for whoever comes first.
  if (job.due.empty()) job.due_by.clear();
}

SlotStep move_to(const Job& job, const SlotGrip& grip, SlotState from, SlotState to) {
  SlotStep step{.what = SlotStep::What::Gone, .after = job, .ended = {}};
  if (!holds(job, grip)) return step;
  if (job.active->state == to) step.what = SlotStep::What::Before;
  if (job.active->state != from) return step;
  step.what = SlotStep::What::Done;
  step.after.active->state = to;
  return step;
}

}  // namespace

void add_due(Job& job, Slot slot) {
  const auto after = std::ranges::upper_bound(job.due, slot.at, {}, &Slot::at);
  job.due.insert(after, slot);
}

EndedSlot ended_active(const ActiveSlot& active, SlotState state, WallTime now) {
  return {.slot = active.slot,
          .state = state,
          .owner = active.owner,
          .resource = active.resource,
          .token = active.token,
          .started_at = active.started_at,
          .ended_at = now};
}

bool try_again(Job& job, Slot slot, const JobRule& rule, WallTime now) {
  if (slot.attempt > rule.retries || job.due.size() >= kMostDue) return false;
  constexpr int kMostDoublings = 20;
  const auto factor = std::int64_t{1} << std::min(slot.attempt - 1, kMostDoublings);
  slot.not_before = now + std::min(rule.backoff * factor, kLongestBackoff);
  ++slot.attempt;
  add_due(job, slot);
  return true;
}

void clear_active(Job& job) {
  job.last_resource = job.active->resource;
  job.last_token = job.active->token;
  job.active.reset();
}

void end_as_failed(EndedSlot& ended) {
  if (ended.slot.attempt == 1 || !is_skip(ended.state)) return;
  ended.cause = cat("attempt ", ended.slot.attempt, " was not started: ", word(ended.state));
  ended.state = SlotState::Failed;
}

bool may_go(const Job& job, const Slot& slot) { return slot.manual || !job.paused; }

SlotStep claim_slot(const Job& job, const SlotGrip& grip) {
  SlotStep step{.what = SlotStep::What::Gone, .after = job, .ended = {}};
  if (holds(job, grip)) {
    if (job.active->state == SlotState::Claimed) step.what = SlotStep::What::Before;
    return step;
  }
  const auto found = find_due(job, grip);
  if (job.active || found == job.due.end() || job.due_by != grip.scheduler) return step;
  if (!may_go(job, *found)) return step;  // the next decision ends it
  step.what = SlotStep::What::Done;
  step.after.active = ActiveSlot{.slot = *found,
                                 .state = SlotState::Claimed,
                                 .owner = grip.owner,
                                 .resource = grip.resource,
                                 .token = grip.token,
                                 .started_at = {}};
  step.after.active->slot.not_before.reset();
  take_due(step.after, found - job.due.begin());
  return step;
}

SlotStep start_slot(const Job& job, const SlotGrip& grip, WallTime now) {
  SlotStep step = move_to(job, grip, SlotState::Claimed, SlotState::Starting);
  if (step.what == SlotStep::What::Done && !may_go(job, job.active->slot)) {
    step.what = SlotStep::What::Gone;
  }
  if (step.what == SlotStep::What::Done) step.after.active->started_at = now;
  return step;
}

SlotStep run_slot(const Job& job, const SlotGrip& grip) {
  return move_to(job, grip, SlotState::Starting, SlotState::Running);
}

SlotStep hand_back_slot(const Job& job, const SlotGrip& grip) {
  SlotStep step{.what = SlotStep::What::Gone, .after = job, .ended = {}};
  if (!holds(job, grip) || job.active->state == SlotState::Running) return step;
  step.what = SlotStep::What::Done;
  clear_active(step.after);
  step.after.due_by.clear();
  add_due(step.after, job.active->slot);
  return step;
}

SlotStep end_slot(const Job& job, const SlotGrip& grip, const SlotEnd& end, const JobRule& rule,
                  WallTime now) {
  SlotStep step{.what = SlotStep::What::Gone, .after = job, .ended = {}};
  if (!holds(job, grip)) return step;
  step.what = SlotStep::What::Done;
  step.ended = ended_active(*job.active, end.state, now);
  step.ended->exit_code = end.exit_code;
  step.ended->cause = end.cause;
  clear_active(step.after);
  if (end.state != SlotState::Ran) {
    step.again = try_again(step.after, job.active->slot, rule, now);
  }
  if (!step.again) ++step.after.rows;
  return step;
}

SlotStep skip_slot(const Job& job, const SlotGrip& grip, SlotState why, WallTime now) {
  SlotStep step{.what = SlotStep::What::Gone, .after = job, .ended = {}};
  const auto found = find_due(job, grip);
  if (found == job.due.end() || job.due_by != grip.scheduler) return step;
  step.what = SlotStep::What::Done;
  step.ended = EndedSlot{.slot = *found,
                         .state = why,
                         .owner = grip.owner,
                         .resource = grip.resource,
                         .token = grip.token,
                         .ended_at = now};
  end_as_failed(*step.ended);
  ++step.after.rows;
  take_due(step.after, found - job.due.begin());
  return step;
}

}  // namespace stint::core
