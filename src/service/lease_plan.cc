#include "service/lease_plan.h"

#include "api/events.h"
#include "base/text.h"
#include "service/ledger.h"
#include "service/records.h"
#include "service/settling.h"

namespace stint::service {
namespace {

using store::Step;

// The history of one resource keeps about this many grants; older ones go many at a time: they lie
// side by side.
constexpr std::uint64_t kKeptGrants = 1000;
constexpr std::uint64_t kDroppedAtOnce = 40;

void expect(Step& step, store::Version version) {
  step.expect = version == 0 ? store::Expect::Absent : store::Expect::Seen;
  step.version = version;
}

void plan_timer(Step& step, const core::TimerPlan& plan) {
  switch (plan.op) {
    case core::TimerPlan::Op::Keep: step.timer = Step::TimerOp::Keep; break;
    case core::TimerPlan::Op::Stop: step.timer = Step::TimerOp::Stop; break;
    case core::TimerPlan::Op::Start: step.timer = Step::TimerOp::Start; break;
    case core::TimerPlan::Op::Extend: step.timer = Step::TimerOp::Extend; break;
  }
  step.ttl = plan.length;
}

Step own_step(const std::string& resource, const Seen& seen, const core::Change& change) {
  Step step;
  step.key = own_key(resource);
  expect(step, seen.own);
  if (change.own) {
    step.kind = Step::Kind::Set;
    step.value = encode(*change.own);
  }
  return step;
}

Step alive_step(const std::string& resource, const Seen& seen, const core::Change& change) {
  Step step;
  step.key = alive_key(resource);
  expect(step, seen.alive);
  demand(step, seen.record.timers.alive);
  if (change.pulse) {
    step.kind = Step::Kind::Set;
    step.value = encode(*change.pulse);
    plan_timer(step, change.alive);
  } else if (change.alive.op != core::TimerPlan::Op::Keep) {
    step.kind = Step::Kind::Touch;
    plan_timer(step, change.alive);
  }
  return step;
}

// cap, rest and cool exist only where they are used.
void add_side_timer(std::vector<Step>& steps, std::string key, const Timer& seen,
                    const core::TimerPlan& plan) {
  const bool there = seen.state != TimerState::None;
  Step step;
  step.key = std::move(key);
  demand(step, seen);
  switch (plan.op) {
    case core::TimerPlan::Op::Keep:
      if (!there) return;
      break;
    case core::TimerPlan::Op::Stop:
      if (!there) return;
      step.kind = Step::Kind::Remove;
      break;
    case core::TimerPlan::Op::Start:
      step.kind = Step::Kind::Set;
      step.value = "{}";
      break;
    case core::TimerPlan::Op::Extend: step.kind = Step::Kind::Touch; break;
  }
  plan_timer(step, plan);
  steps.push_back(std::move(step));
}

Step set_any(std::string key, std::string value) {
  Step step;
  step.kind = Step::Kind::Set;
  step.key = std::move(key);
  step.value = std::move(value);
  step.timer = Step::TimerOp::Stop;  // it has none
  return step;
}

void add_history(std::vector<Step>& steps, const std::string& resource, const core::Past& past) {
  steps.push_back(set_any(history_key(resource, past.own.token), encode(past)));
  const std::uint64_t newest = past.own.token.number();
  if (newest <= kKeptGrants || newest % kDroppedAtOnce != 0) return;
  for (std::uint64_t i = 0; i < kDroppedAtOnce && i + kKeptGrants < newest; ++i) {
    Step& drop = steps.emplace_back();
    drop.kind = Step::Kind::Remove;
    drop.key = history_key(resource, Token(newest - kKeptGrants - i));
  }
}

api::Event base_event(std::string_view kind, const std::string& resource,
                      const core::Ownership& own, WallTime now) {
  api::Event event;
  event.at = now;
  event.kind = kind;
  event.resource = resource;
  event.token = own.token.number();
  event.owner = own.owner.text();
  return event;
}

void add_order(api::Event& event, const core::Ownership& own) {
  if (!own.by.empty()) event.details.emplace_back("by", own.by);
  if (!own.why.empty()) event.details.emplace_back("why", own.why);
}

api::Event moved_event(const std::string& resource, const core::Change& change, WallTime now) {
  const core::Ownership& own = *change.own;
  const bool granted = change.pulse && change.pulse->standing == core::Standing::Granted;
  api::Event event = base_event(granted ? "granted" : core::word(own.reason), resource, own, now);
  if (granted) event.details.emplace_back("reason", std::string(core::word(own.reason)));
  if (change.past) {
    event.details.emplace_back("previous_token",
                               static_cast<std::int64_t>(change.past->own.token.number()));
    event.details.emplace_back("previous_owner", change.past->own.owner.text());
  }
  add_order(event, own);
  return event;
}

}  // namespace

std::vector<Step> plan_steps(const std::string& resource, const Seen& seen,
                             const core::Change& change) {
  std::vector<Step> steps;
  constexpr std::size_t kMostSteps = 12;  // all but the history's removals
  steps.reserve(kMostSteps);
  steps.push_back(own_step(resource, seen, change));
  steps.push_back(alive_step(resource, seen, change));
  const core::Timers& timers = seen.record.timers;
  add_side_timer(steps, cap_key(resource), timers.cap, change.cap);
  add_side_timer(steps, rest_key(resource), timers.rest, change.rest);
  add_side_timer(steps, cool_key(resource), timers.cool, change.cool);
  if (change.work) {
    // A report that came in between is not written over.
    Step& work = steps.emplace_back(set_any(work_key(resource), encode(*change.work)));
    expect(work, seen.work);
  }
  if (change.past) add_history(steps, resource, *change.past);
  if (change.own) {
    // The floor that the new token was counted from must still be the store's.   G1
    Step floor;
    floor.key = kMetaKey;
    expect(floor, seen.meta);
    steps.push_back(std::move(floor));
    // And nothing that was counted may have been lost since.   G1
    if (!seen.tail_key.empty()) {
      Step tail;
      tail.key = seen.tail_key;
      expect(tail, seen.tail);
      steps.push_back(std::move(tail));
    }
  }
  return steps;
}

std::vector<Step> plan_events(const std::string& resource, const Seen& seen, const core::Verb& verb,
                              const core::Decision& decision, WallTime now) {
  std::vector<Step> steps;
  const core::Change& change = decision.change;
  if (change.past && change.past->ended == core::Reason::Expired) {
    // Expiry wakes nobody; it is written by whoever next changes the record.
    api::Event event = base_event("expired", resource, change.past->own, now);
    if (change.past->ended_at)
      event.details.emplace_back("ended_at_ms", to_ms(*change.past->ended_at));
    steps.push_back(append_event(event));
  }
  if (change.own) {
    steps.push_back(append_event(moved_event(resource, change, now)));
  } else if (decision.outcome == core::Outcome::Ended) {
    const bool stalled = std::holds_alternative<core::Stall>(verb);
    steps.push_back(append_event(
        base_event(stalled ? "stalled" : "released", resource, *seen.record.own, now)));
  }
  return steps;
}

std::vector<Step> plan_forget(const std::string& resource, const Seen& seen, std::string meta,
                              store::Version meta_version, WallTime now) {
  std::vector<Step> steps;
  Step floor = set_any(std::string(kMetaKey), std::move(meta));
  expect(floor, meta_version);
  steps.push_back(std::move(floor));
  const auto remove = [&](std::string key) -> Step& {
    Step& step = steps.emplace_back();
    step.kind = Step::Kind::Remove;
    step.key = std::move(key);
    return step;
  };
  expect(remove(own_key(resource)), seen.own);
  Step& alive = remove(alive_key(resource));
  expect(alive, seen.alive);
  demand(alive, seen.record.timers.alive);
  demand(remove(cap_key(resource)), seen.record.timers.cap);
  demand(remove(rest_key(resource)), seen.record.timers.rest);
  demand(remove(cool_key(resource)), seen.record.timers.cool);
  remove(work_key(resource));
  steps.push_back(append_event(base_event("forgotten", resource, *seen.record.own, now)));
  return steps;
}

}  // namespace stint::service
