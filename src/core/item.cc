#include "core/item.h"

#include <algorithm>

#include "base/text.h"

namespace stint::core {
namespace {

ItemDecision lost(ItemCause cause) { return {ItemOutcome::Lost, cause, std::nullopt}; }
ItemDecision refused(ItemCause cause) { return {ItemOutcome::Refused, cause, std::nullopt}; }
ItemDecision repeated() { return {ItemOutcome::Repeated, ItemCause::None, std::nullopt}; }
ItemDecision nothing() { return {ItemOutcome::Nothing, ItemCause::None, std::nullopt}; }
ItemDecision done(ItemChange change) {
  return {ItemOutcome::Done, ItemCause::None, std::move(change)};
}

Token next_epoch(const Item& item, const Context& context) {
  return std::max(item.epoch, context.floor).next();  // G1
}

// Nobody was granted this epoch: it is an operator's.
bool granted(const Item& item) { return !item.claim.empty(); }

bool made_progress(const Item& item) {
  return item.epoch.issued() && item.progress_epoch == item.epoch;
}

// No claim stands any more.
ItemChange unclaimed(const Item& before) {
  ItemChange change;
  change.item = before;
  change.alive = TimerPlan::stop();
  change.pace = TimerPlan::stop();
  return change;
}

ItemChange ended(const Item& before, ItemState state, const Context& context) {
  ItemChange change = unclaimed(before);
  change.item.state = state;
  change.item.ended_at = context.now_wall;
  return change;
}

ItemChange waiting(const Item& before, Millis delay) {
  ItemChange change = unclaimed(before);
  change.item.state = ItemState::Waiting;
  change.item.ended_at = std::nullopt;
  change.delay = delay;
  return change;
}

// ---- claim

ItemDecision claim(const ItemRecord& record, const ClaimItem& bid, const Context& context) {
  const Item& before = record.item;
  switch (before.state) {
    case ItemState::Waiting: break;
    case ItemState::Claimed:
      // Whoever asks, and under whatever name: only the very same request gets the same answer.
      return before.claim.matches(bid.claim) ? repeated() : refused(ItemCause::Taken);
    case ItemState::Parked:
    case ItemState::Failed:
    case ItemState::Cancelled:
    case ItemState::Done: return refused(ItemCause::NotWaiting);
  }
  const bool reserved = !before.reserved_for.empty() && running(record.timers.delay);
  const bool mine = reserved && before.reserved_for == bid.owner;
  if (!claimable(record) && !mine) return refused(ItemCause::NotYet);
  ItemChange change;
  Item& item = change.item;
  item = before;
  item.state = ItemState::Claimed;
  item.epoch = next_epoch(before, context);
  item.attempts = before.attempts + 1;
  item.owner = bid.owner;
  item.claim = bid.claim;
  item.reason = mine ? Reason::TakenUp : before.reason;
  item.claimed_at = context.now_wall;
  item.started = bid.start;
  item.reports = bid.reports;
  item.last = LastWord::Open;
  item.digest.clear();
  item.why.clear();
  item.by.clear();
  item.order.clear();
  item.reserved_for = {};
  item.ended_at = std::nullopt;
  change.alive = TimerPlan::start(bid.ttl.count() > 0 ? bid.ttl : before.limits.claim_ttl);
  const bool awaited = bid.start || !bid.starts_later;
  change.pace = awaited && before.limits.progress_timeout.count() > 0
                    ? TimerPlan::start(before.limits.progress_timeout)
                    : TimerPlan::stop();
  return done(std::move(change));
}

// ---- the worker's verbs

// Empty: the epoch is the item's own, and it was granted to somebody.
std::optional<ItemCause> not_holder(const Item& item, Token epoch) {
  if (!epoch.issued() || epoch > item.epoch) return ItemCause::NeverIssued;
  if (epoch == item.epoch) {
    if (granted(item)) return std::nullopt;
    return ItemCause::NeverIssued;
  }
  // An operator's verb is the last thing that happened to it, or a later claim is.
  return granted(item) ? ItemCause::Superseded : ItemCause::Ordered;
}

// Why a verb of the right epoch comes too late for a claim that no longer stands.
ItemCause how_it_ended(const Item& item) {
  if (item.last != LastWord::Open) return ItemCause::Spoken;
  return item.reason == Reason::Stalled ? ItemCause::Stalled : ItemCause::Expired;
}

// The janitor ended the claim, and nobody has claimed since: a late result still counts.
bool open_for_late(const Item& item) {
  return item.last == LastWord::Open &&
         (item.state == ItemState::Waiting || item.state == ItemState::Parked);
}

std::optional<ItemCause> not_live(const ItemRecord& record) {
  if (record.item.state != ItemState::Claimed) return how_it_ended(record.item);
  if (fired(record.timers.pace)) return ItemCause::Stalled;
  if (!running(record.timers.alive)) return ItemCause::Expired;
  return std::nullopt;
}

TimerPlan paced(const Item& item) {
  return item.limits.progress_timeout.count() > 0 ? TimerPlan::start(item.limits.progress_timeout)
                                                  : TimerPlan{};
}

ItemDecision act(const ItemRecord& record, const StartItem& verb, const Context&) {
  if (const auto cause = not_live(record)) return lost(*cause);
  if (record.item.started && record.item.reports == verb.reports) return repeated();
  ItemChange change;
  change.item = record.item;
  change.item.started = true;
  change.item.reports = verb.reports;
  change.pace = paced(record.item);
  return done(std::move(change));
}

ItemDecision act(const ItemRecord& record, const RenewItem& verb, const Context&) {
  if (const auto cause = not_live(record)) return lost(*cause);  // G3
  ItemChange change;
  change.item = record.item;
  const Millis own = record.timers.alive.ttl.value_or(record.item.limits.claim_ttl);
  change.alive = {TimerPlan::Op::Extend, verb.ttl.count() > 0 ? verb.ttl : own};
  return done(std::move(change));
}

// Also when the claim's timer has fired and nobody has settled it yet: it prolongs nothing. But a
// claim that has stalled is not revived.
ItemDecision act(const ItemRecord& record, const CheckpointItem& verb, const Context& context) {
  const Item& before = record.item;
  if (before.state != ItemState::Claimed) return lost(how_it_ended(before));
  if (fired(record.timers.pace)) return lost(ItemCause::Stalled);
  ItemChange change;
  change.item = before;
  change.item.started = true;
  // Data alone says nothing about where it is.
  if (!verb.marker.empty()) change.item.progress = verb.marker;
  change.item.progress_at = context.now_wall;
  change.item.progress_epoch = before.epoch;
  change.pace = paced(before);
  return done(std::move(change));
}

ItemDecision act(const ItemRecord& record, const CompleteItem& verb, const Context& context) {
  const Item& before = record.item;
  if (before.state == ItemState::Done && before.last == LastWord::Completed) {
    return before.digest == verb.digest ? repeated() : lost(ItemCause::Spoken);
  }
  if (before.state != ItemState::Claimed && !open_for_late(before)) {
    return lost(how_it_ended(before));
  }
  ItemChange change = ended(before, ItemState::Done, context);
  change.item.last = LastWord::Completed;
  change.item.digest = verb.digest;
  change.item.why.clear();
  return done(std::move(change));
}

ItemDecision act(const ItemRecord& record, const FailItem& verb, const Context& context) {
  const Item& before = record.item;
  const LastWord said = verb.later ? LastWord::Later : LastWord::Failed;
  if (before.last == said && before.why == verb.why) return repeated();
  if (before.state != ItemState::Claimed && !open_for_late(before)) {
    return lost(how_it_ended(before));
  }
  ItemChange change;
  if (verb.later) {
    const Millis backoff = backoff_after(before.limits, std::max(before.attempts, 1U));
    change = waiting(before, verb.later->count() > 0 ? *verb.later : backoff);
    change.item.attempts = before.attempts > 0 ? before.attempts - 1 : 0;
  } else if (before.attempts < before.limits.max_attempts) {
    change = waiting(before, backoff_after(before.limits, before.attempts));
  } else {
    change = ended(before, ItemState::Failed, context);
  }
  change.item.reason = Reason::Released;
  change.item.last = said;
  change.item.why = verb.why;
  return done(std::move(change));
}

ItemDecision act(const ItemRecord& record, const ReleaseItem&, const Context&) {
  const Item& before = record.item;
  if (before.last == LastWord::Released) return repeated();
  if (open_for_late(before)) return repeated();  // it is given back already
  if (before.state != ItemState::Claimed) return lost(how_it_ended(before));
  ItemChange change = waiting(before, Millis(0));
  change.item.attempts = before.attempts > 0 ? before.attempts - 1 : 0;
  change.item.reason = Reason::Released;
  change.item.last = LastWord::Released;
  return done(std::move(change));
}

template <class Verb>
ItemDecision worker(const ItemRecord& record, const Verb& verb, const Context& context) {
  if (const auto cause = not_holder(record.item, verb.epoch)) return lost(*cause);  // G8
  return act(record, verb, context);
}

// ---- the janitor

bool may_rerun(const Item& item) {
  switch (item.limits.requeue) {
    case Requeue::Never: return false;
    case Requeue::Always: return true;
    // Whoever was to report progress and reported none has done nothing that counts.
    case Requeue::IfNoProgress: return !item.started || (item.reports && !made_progress(item));
  }
  return false;
}

// The epoch stays: a late result counts until somebody claims.
ItemDecision tend(const ItemRecord& record, const Context& context) {
  const Item& before = record.item;
  if (before.state != ItemState::Claimed) return nothing();
  const bool expired = fired(record.timers.alive);
  if (!expired && !fired(record.timers.pace)) return nothing();
  const std::string_view how = expired ? "its claim ran out" : "it showed no progress";
  const bool used_up = before.attempts >= before.limits.max_attempts;
  const bool again = may_rerun(before) && !used_up;
  ItemChange change =
      again ? waiting(before, Millis(0)) : ended(before, ItemState::Parked, context);
  change.item.reason = expired ? Reason::Expired : Reason::Stalled;
  change.item.by = "janitor";
  change.item.why = again     ? std::string(how)
                    : used_up ? cat(how, ", and ", before.attempts, " of ",
                                    before.limits.max_attempts, " attempts are used up")
                              : cat(how, before.started ? " after the work had begun" : "",
                                    " (requeue = ", word(before.limits.requeue), ")");
  return done(std::move(change));
}

// ---- the operator

// Whether the order is meant for an item in this state; empty: it is.
std::optional<ItemCause> not_for(ItemOrder::What what, ItemState state) {
  const bool finished = state == ItemState::Done || state == ItemState::Cancelled;
  switch (what) {
    case ItemOrder::What::Drop: return std::nullopt;
    case ItemOrder::What::Replay:
      if (state == ItemState::Waiting || state == ItemState::Claimed) return ItemCause::NotFinished;
      return std::nullopt;
    case ItemOrder::What::Requeue:
    case ItemOrder::What::Reassign:
      if (finished) return ItemCause::Finished;
      return std::nullopt;
    case ItemOrder::What::Park:
    case ItemOrder::What::Cancel:
      if (finished || state == ItemState::Failed) return ItemCause::Finished;
      return std::nullopt;
  }
  return ItemCause::Finished;
}

ItemChange carried_out(const Item& before, const ItemOrder& order, const Context& context) {
  switch (order.what) {
    case ItemOrder::What::Park: return ended(before, ItemState::Parked, context);
    case ItemOrder::What::Cancel: return ended(before, ItemState::Cancelled, context);
    case ItemOrder::What::Requeue:
    case ItemOrder::What::Replay: {
      ItemChange change = waiting(before, Millis(0));
      change.item.attempts = 0;  // a person said so: it may use all of them again
      return change;
    }
    case ItemOrder::What::Reassign: {
      const Millis hold = order.hold.count() > 0 ? order.hold : before.limits.claim_ttl;
      return waiting(before, order.to.empty() ? Millis(0) : hold);
    }
    case ItemOrder::What::Drop: break;
  }
  ItemChange change = unclaimed(before);
  change.dropped = true;
  return change;
}

Reason reason_of(ItemOrder::What what) {
  if (what == ItemOrder::What::Reassign) return Reason::Transferred;
  return what == ItemOrder::What::Cancel ? Reason::Cancelled : Reason::Revoked;
}

ItemDecision obey(const ItemRecord& record, const ItemOrder& order, const Context& context) {
  const Item& before = record.item;
  if (!order.id.empty() && before.order == order.id) return repeated();
  if (order.expected && *order.expected != before.epoch) return lost(ItemCause::WrongEpoch);
  if (live(record) && !order.expected) return refused(ItemCause::Live);
  if (order.what == ItemOrder::What::Cancel && before.state == ItemState::Cancelled) {
    return repeated();
  }
  if (const auto cause = not_for(order.what, before.state)) return refused(*cause);
  ItemChange change = carried_out(before, order, context);
  Item& item = change.item;
  item.epoch = next_epoch(before, context);
  item.owner = {};
  item.claim = {};  // nobody's: no worker can show this epoch
  item.reason = reason_of(order.what);
  item.started = false;
  item.reports = false;
  item.last = LastWord::Open;
  item.digest.clear();
  item.why = order.why;
  item.by = order.by;
  item.order = order.id;
  item.reserved_for = order.what == ItemOrder::What::Reassign ? order.to : Owner();
  return done(std::move(change));
}

struct Decider {
  const ItemRecord& record;
  const Context& context;
  ItemDecision operator()(const ClaimItem& verb) const { return claim(record, verb, context); }
  ItemDecision operator()(const StartItem& verb) const { return worker(record, verb, context); }
  ItemDecision operator()(const RenewItem& verb) const { return worker(record, verb, context); }
  ItemDecision operator()(const CheckpointItem& verb) const {
    return worker(record, verb, context);
  }
  ItemDecision operator()(const CompleteItem& verb) const { return worker(record, verb, context); }
  ItemDecision operator()(const FailItem& verb) const { return worker(record, verb, context); }
  ItemDecision operator()(const ReleaseItem& verb) const { return worker(record, verb, context); }
  ItemDecision operator()(const TendItem&) const { return tend(record, context); }
  ItemDecision operator()(const ItemOrder& verb) const { return obey(record, verb, context); }
};

}  // namespace

ItemTimers timers_after(const ItemTimers& before, const ItemChange& change, Millis granted) {
  const auto running = [](Millis length) { return Timer{TimerState::Running, length, length}; };
  ItemTimers out = before;
  switch (change.alive.op) {
    case TimerPlan::Op::Keep: break;
    case TimerPlan::Op::Stop: out.alive = {}; break;
    case TimerPlan::Op::Start: out.alive = running(granted); break;
    case TimerPlan::Op::Extend:  // it never shortens   G3
      out.alive = running(std::max(granted, before.alive.remaining.value_or(Millis(0))));
      break;
  }
  if (change.pace.op == TimerPlan::Op::Stop) out.pace = {};
  if (change.pace.op == TimerPlan::Op::Start) out.pace = running(change.pace.length);
  out.delay = change.delay.count() > 0 ? running(change.delay) : Timer();
  return out;
}

Status check_limits(const ItemLimits& limits) {
  constexpr Millis kLongest{std::int64_t{366} * 24 * 3600 * 1000};
  constexpr std::uint32_t kMostAttempts = 1000;
  if (limits.max_attempts == 0 || limits.max_attempts > kMostAttempts) {
    return invalid(cat("max_attempts is a number from 1 to ", kMostAttempts));
  }
  if (limits.claim_ttl.count() <= 0) return invalid("a claim's ttl is longer than nothing");
  for (const Millis length :
       {limits.claim_ttl, limits.progress_timeout, limits.backoff, limits.backoff_max}) {
    if (length.count() < 0 || length > kLongest) {
      return invalid("the times of a queue are not negative, nor longer than a year");
    }
  }
  return {};
}

Status check_claim_ttl(Millis ttl) {
  if (ttl >= kShortestClaim) return {};
  return invalid(cat("a claim lasts at least ", format_duration(kShortestClaim)));
}

Status check_new_limits(const ItemLimits& limits) {
  if (auto ok = check_limits(limits); !ok) return ok;
  return check_claim_ttl(limits.claim_ttl);
}

Millis backoff_after(const ItemLimits& limits, std::uint32_t attempts) {
  Millis delay = std::min(limits.backoff, limits.backoff_max);
  for (std::uint32_t i = 1; i < attempts && delay < limits.backoff_max; ++i) {
    if (delay.count() == 0) break;
    delay = std::min(delay * 2, limits.backoff_max);
  }
  return delay;
}

bool claimable(const ItemRecord& record) {
  return record.item.state == ItemState::Waiting && !running(record.timers.delay);
}

bool live(const ItemRecord& record) {
  return record.item.state == ItemState::Claimed && running(record.timers.alive) &&
         !fired(record.timers.pace);
}

ItemDecision decide(const ItemRecord& record, const ItemVerb& verb, const Context& context) {
  return std::visit(Decider{record, context}, verb);
}

}  // namespace stint::core
