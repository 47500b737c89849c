// From a decision on an item to the steps of one commit.
#include <algorithm>

#include "base/text.h"
#include "service/queue_service.h"
#include "service/settling.h"

namespace stint::service {

using store::Step;

namespace {

constexpr std::size_t kNonce = 16;

Step step_of(Step::Kind kind, std::string key) {
  Step step;
  step.kind = kind;
  step.key = std::move(key);
  return step;
}

Step set(std::string key, std::string value) {
  Step step = step_of(Step::Kind::Set, std::move(key));
  step.value = std::move(value);
  step.timer = Step::TimerOp::Stop;
  return step;
}

// Whether it matters that the timers are still as they were read: a late result counts whatever
// they say, but nothing is prolonged, begun or taken away on an old reading.
bool by_the_clock(const core::ItemVerb& verb) {
  return std::holds_alternative<core::RenewItem>(verb) ||
         std::holds_alternative<core::StartItem>(verb) ||
         std::holds_alternative<core::TendItem>(verb) ||
         std::holds_alternative<core::ItemOrder>(verb) ||
         std::holds_alternative<core::ClaimItem>(verb);
}

// By an operator, or for lack of progress: whoever has the claim is told by the record `stop`.
bool was_stopped(const core::Item& item) {
  return !item.order.empty() || item.reason == core::Reason::Stalled;
}

void plan_timer(Step& step, const core::ItemChange& change) {
  step.timer = Step::TimerOp::Stop;
  if (change.delay.count() > 0) {
    step.timer = Step::TimerOp::Start;
    step.ttl = change.delay;
    return;
  }
  switch (change.alive.op) {
    case core::TimerPlan::Op::Keep: step.timer = Step::TimerOp::Keep; return;
    case core::TimerPlan::Op::Stop: return;
    case core::TimerPlan::Op::Start: step.timer = Step::TimerOp::Start; break;
    case core::TimerPlan::Op::Extend: step.timer = Step::TimerOp::Extend; break;
  }
  step.ttl = change.alive.length;
}

void plan_pace(std::vector<Step>& steps, const core::ItemId& id, const Timer& seen,
               const core::ItemVerb& verb, const core::TimerPlan& plan) {
  Step step = step_of(Step::Kind::Check, pace_key(id));
  const bool judged = by_the_clock(verb) || std::holds_alternative<core::CheckpointItem>(verb);
  if (judged) demand(step, seen);
  switch (plan.op) {
    case core::TimerPlan::Op::Keep:
    case core::TimerPlan::Op::Extend:
      if (!step.demand) return;
      break;
    case core::TimerPlan::Op::Stop: step.kind = Step::Kind::Remove; break;
    case core::TimerPlan::Op::Start:
      step.kind = Step::Kind::Set;
      step.value = "{}";
      step.timer = Step::TimerOp::Start;
      step.ttl = plan.length;
      break;
  }
  steps.push_back(std::move(step));
}

std::string_view event_kind(const core::ItemVerb& verb, const core::ItemChange& change) {
  if (std::holds_alternative<core::ClaimItem>(verb)) return "item_claimed";
  if (std::holds_alternative<core::CompleteItem>(verb)) return "item_completed";
  if (std::holds_alternative<core::ReleaseItem>(verb)) return "item_released";
  if (const auto* fail = std::get_if<core::FailItem>(&verb)) {
    return fail->later ? "item_put_off" : "item_failed";
  }
  if (std::holds_alternative<core::TendItem>(verb)) {
    return change.item.state == core::ItemState::Parked ? "item_parked" : "item_requeued";
  }
  const auto* order = std::get_if<core::ItemOrder>(&verb);
  return order != nullptr ? core::event_word(order->what) : std::string_view();
}

}  // namespace

std::vector<Step> QueueService::plan(const Seen& seen, const core::ItemVerb& verb,
                                     const StoredItem& after, const core::ItemChange& change) {
  std::vector<Step> steps;
  const core::ItemId& id = seen.id;
  const std::string from = shelf_key(seen.shelf, id);
  const Shelf to = shelf_of(change.item, change.delay.count() > 0);
  const bool renew = std::holds_alternative<core::RenewItem>(verb);
  StoredItem stored = after;
  stored.not_before.reset();
  if (change.delay.count() > 0) stored.not_before = wall_of(seen) + change.delay;

  const bool stays = !change.dropped && to == seen.shelf;
  Step first = step_of(renew   ? Step::Kind::Touch
                       : stays ? Step::Kind::Set
                               : Step::Kind::Remove,
                       from);
  first.expect = store::Expect::Seen;
  first.version = seen.version;
  if (by_the_clock(verb)) {
    demand(first, seen.shelf == Shelf::Later ? seen.timers.delay : seen.timers.alive);
  }
  if (stays) {
    plan_timer(first, change);
    if (!renew) first.value = encode(stored);
  }
  steps.push_back(std::move(first));
  if (!stays && !change.dropped) {
    Step second = set(shelf_key(to, id), encode(stored));
    second.expect = store::Expect::Absent;
    plan_timer(second, change);
    steps.push_back(std::move(second));
  }
  std::vector<std::string> had;
  if (seen.shelf == Shelf::Later) had = index_keys(id, seen.stored);
  std::vector<std::string> has;
  if (!change.dropped && to == Shelf::Later) has = index_keys(id, stored);
  for (const std::string& key : had) {
    if (std::ranges::find(has, key) == has.end()) steps.push_back(step_of(Step::Kind::Remove, key));
  }
  for (const std::string& key : has) {
    if (std::ranges::find(had, key) == had.end()) steps.push_back(set(key, "{}"));
  }
  if (change.item.limits.progress_timeout.count() > 0) {
    plan_pace(steps, id, seen.timers.pace, verb, change.pace);
  }
  // Who still works at it is woken: its claim was taken away, and did not run out.
  const bool stalled = std::holds_alternative<core::TendItem>(verb) && was_stopped(change.item);
  const bool order = std::holds_alternative<core::ItemOrder>(verb);
  if ((order || stalled) && seen.shelf == Shelf::Claimed) {
    steps.push_back(set(stop_key(id), cat(R"({"epoch":)", change.item.epoch.number(), '}')));
  }
  if (std::holds_alternative<core::ClaimItem>(verb) && was_stopped(seen.stored.item)) {
    steps.push_back(step_of(Step::Kind::Remove, stop_key(id)));
  }
  if (change.dropped && !seen.stored.unique.empty()) {
    steps.push_back(step_of(Step::Kind::Remove, unique_key(id.queue(), seen.stored.unique)));
  }
  return steps;
}

std::vector<Step> QueueService::plan_events(const Seen& seen, const core::ItemVerb& verb,
                                            const core::ItemChange& change, WallTime now) const {
  const std::string_view kind = event_kind(verb, change);
  if (kind.empty()) return {};
  const core::Item& after = change.item;
  api::Event event;
  event.at = now;
  event.kind = kind;
  event.resource = seen.id.text();
  event.token = after.epoch.number();
  // Of an operator's verb: whose claim it ended.
  event.owner = after.owner.empty() ? seen.stored.item.owner.text() : after.owner.text();
  if (std::holds_alternative<core::ClaimItem>(verb)) {
    event.details.emplace_back("reason", std::string(core::word(after.reason)));
    event.details.emplace_back("attempt", static_cast<std::int64_t>(after.attempts));
  }
  if (std::holds_alternative<core::TendItem>(verb)) {
    event.details.emplace_back("cause", std::string(core::word(after.reason)));
  }
  if (!after.by.empty()) event.details.emplace_back("by", after.by);
  if (!after.why.empty()) event.details.emplace_back("why", after.why);
  if (!after.reserved_for.empty()) event.details.emplace_back("to", after.reserved_for.text());
  if (std::holds_alternative<core::FailItem>(verb)) {
    event.details.emplace_back("state", std::string(core::word(after.state)));
  }
  return {append_event(event)};
}

// ---- put, and what a completion puts

Result<std::vector<Step>> QueueService::plan_put(const core::ItemId& id,
                                                 const api::PutRequest& request,
                                                 const core::ItemLimits& limits,
                                                 StoredItem stored) const {
  constexpr std::size_t kMostAtFirst = 2000;  // what comes later has room beside it
  stored.item.limits = limits;
  stored.labels = request.labels;
  stored.unique = request.unique;
  stored.put_by = request.by;
  stored.put_at = clock_.wall();
  const bool delayed = request.delay.count() > 0;
  if (delayed) stored.not_before = stored.put_at + request.delay;
  std::vector<Step> pieces;
  stored.payload = make_content(id, "p", request.payload, kPayloadRoom, pieces);
  std::string value = encode(stored);
  if (value.size() > kMostAtFirst && pieces.empty() && !request.payload.empty()) {
    stored.payload = make_content(id, "p", request.payload, 0, pieces);
    value = encode(stored);
  }
  Step step = set(shelf_key(shelf_of(stored.item, delayed), id), std::move(value));
  step.expect = store::Expect::Absent;
  if (delayed) {
    step.timer = Step::TimerOp::Start;
    step.ttl = request.delay;
  }
  std::vector<Step> steps = {std::move(step)};
  if (delayed) steps.push_back(set(due_key(id, *stored.not_before), "{}"));
  std::move(pieces.begin(), pieces.end(), std::back_inserter(steps));
  return steps;
}

// Result, state and follow-ups are one commit: one step each. Only contents that do not fit beside
// them are written ahead, under names that nothing else knows until that commit: each attempt has
// its own, so what a refused one wrote stands beside the accepted one's, not in its place.   G8 G10
Result<QueueService::Extra> QueueService::plan_follow_ups(const api::Completion& completion,
                                                          const Seen& seen) {
  Extra extra;
  if (completion.result) {
    const std::string what =
        cat('r', completion.ref.epoch.number(), '-', random_.id_hex().substr(0, kNonce));
    extra.result = make_content(seen.id, what, *completion.result, kSmallRoom, extra.before);
  }
  for (const api::FollowUp& next : completion.then) {
    auto config_of = config(next.queue);
    if (!config_of) return config_of.error();
    std::optional<core::ItemId> id;
    {
      const MutexLock lock(mutex_);
      id = ids_.make(next.queue, 0, clock_.wall(), random_);
    }
    StoredItem stored;
    stored.parent = seen.id.text();
    const api::PutRequest request{.queue = next.queue,
                                  .payload = next.payload,
                                  .priority = 0,
                                  .delay = {},
                                  .unique = {},
                                  .labels = {},
                                  .by = seen.stored.item.owner.text(),
                                  .limits = {},
                                  .create = false};
    auto steps = plan_put(*id, request, config_of->limits, std::move(stored));
    if (!steps) return steps.error();
    extra.steps.push_back(std::move(steps->front()));
    std::move(steps->begin() + 1, steps->end(), std::back_inserter(extra.before));
    extra.follow_ups.push_back(*id);
  }
  constexpr std::size_t kMostBeside = 9;  // the item's own steps, the event, the kept answer
  if (extra.steps.size() + extra.before.size() + kMostBeside <= store::Store::kMaxSteps) {
    std::move(extra.before.begin(), extra.before.end(), std::back_inserter(extra.steps));
    extra.before.clear();
  }
  return extra;
}

// What was written ahead of a commit that was not made, and can never be made any more: rubbish.
// That it cannot be removed now costs nothing but room.
void QueueService::discard(const std::vector<Step>& ahead) {
  for (std::size_t at = 0; at < ahead.size(); at += kStepsAhead) {
    std::vector<Step> steps;
    for (std::size_t i = at; i < std::min(at + kStepsAhead, ahead.size()); ++i) {
      steps.push_back(step_of(Step::Kind::Remove, ahead[i].key));
    }
    if (!store_.commit(steps, store::Sync::Relaxed)) return;
  }
}

// The item is completed: no other result of this epoch or an earlier one will ever be named. Those
// of a later one may be about to be.
void QueueService::discard_results(const core::ItemId& id, Token epoch, const Content& named) {
  const std::string prefix = blob_prefix(id) + "r";
  auto found = store_.scan({.prefix = prefix, .after = "", .limit = kPage, .backwards = false});
  if (!found) return;
  std::vector<Step> rubbish;
  for (const store::Entry& entry : found->entries) {
    const std::string_view name = std::string_view(entry.key).substr(prefix.size());
    const auto of = parse_digits(name.substr(0, name.find_first_of("-.")));
    const bool mine =
        !named.what.empty() && entry.key.starts_with(cat(blob_prefix(id), named.what, '.'));
    if (of && *of <= epoch.number() && !mine) {
      rubbish.push_back(step_of(Step::Kind::Remove, entry.key));
    }
  }
  discard(rubbish);
}

}  // namespace stint::service
