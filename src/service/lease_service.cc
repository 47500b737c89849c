#include "service/lease_service.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/text.h"
#include "service/lease_plan.h"

namespace stint::service {
namespace {

// Each conflict means that somebody else got on; this many in a row means that something is wrong.
constexpr int kMostTries = 1000;
// An unknown commit is repeated on the very version that it expected: that settles it, unless the
// repetition is lost as well.
constexpr int kMostUnknowns = 3;

Error too_busy(const ResourceName& resource) {
  return unavailable(cat("the records of ", quoted(resource.text()), " change too fast to be committed to"));
}

}  // namespace

struct LeaseService::Snapshot {
  std::string resource;
  Seen seen;
  Token floor;
  Generation generation;
  std::optional<WallTime> store_wall;
  std::optional<Nanos> store_time;
};

struct LeaseService::Settled {
  core::Decision decision;
  Snapshot before;
  Snapshot after;  // as committed; the same as before if nothing was written
  api::Hint hint;
  Millis granted_ttl{0};
};

LeaseService::LeaseService(store::Store& store, Ledger& ledger, Life life, const Clock& clock,
                           Random& random, Anchors* anchors)
    : store_(store),
      ledger_(ledger),
      life_(std::move(life)),
      clock_(clock),
      random_(random),
      anchors_(anchors) {}

WallTime LeaseService::wall_of(const Snapshot& snapshot) const {
  return snapshot.store_wall.value_or(clock_.wall());
}

Result<LeaseService::Snapshot> LeaseService::look(const ResourceName& name) {
  const std::string& r = name.text();
  auto reading = store_.read({std::string(kMetaKey), own_key(r), alive_key(r), work_key(r), cap_key(r),
                              rest_key(r), cool_key(r)});
  if (!reading) return reading.error();
  const auto& entries = reading->entries;
  Snapshot out{.resource = r,
               .seen = {},
               .floor = {},
               .generation = {},
               .store_wall = reading->store_wall,
               .store_time = reading->store_time};
  if (!entries[0].present()) return unavailable("the store has lost its meta record");
  auto meta = decode_meta(entries[0].value);
  if (!meta) return meta.error();
  out.floor = meta->floor;
  out.generation = meta->generation;
  out.seen.meta = entries[0].version;
  out.seen.own = entries[1].version;
  out.seen.alive = entries[2].version;
  core::Record& record = out.seen.record;
  if (entries[1].present()) {
    auto own = decode_own(entries[1].value);
    if (!own) return own.error();
    record.own = std::move(*own);
    auto pulse = decode_pulse(entries[2].value);
    if (!pulse) return pulse.error();
    record.pulse = *pulse;
  }
  if (entries[3].present()) {
    auto work = decode_work(entries[3].value);
    if (!work) return work.error();
    record.work = std::move(*work);
  }
  record.timers = {entries[2].timer, entries[4].timer, entries[5].timer, entries[6].timer};
  return out;
}

// What the records must be if this grip is good: decided on at once, without reading. The commit's
// expectations prove it or not.
LeaseService::Snapshot LeaseService::assume(const api::Grip& grip) {
  Snapshot out;
  out.resource = grip.resource.text();
  out.seen.own = grip.hint->own;
  out.seen.alive = grip.hint->alive;
  core::Record& record = out.seen.record;
  record.own.emplace();
  record.own->token = grip.token;
  record.own->claim = grip.claim.hash();
  if (grip.owner) record.own->owner = *grip.owner;
  record.pulse.standing = core::Standing::Granted;
  record.timers.alive.state = TimerState::Running;
  return out;
}

store::Sync LeaseService::sync_of(const core::Change& change) const {
  if (change.own) return store::Sync::Durable;  // G11
  const bool renewal = change.alive.op == core::TimerPlan::Op::Extend;
  if (renewal && !store_.capabilities().relaxed_renewals) return store::Sync::Durable;
  return store::Sync::Relaxed;
}

namespace {

Timer started(const core::TimerPlan& plan, const Timer& before, Millis granted) {
  switch (plan.op) {
    case core::TimerPlan::Op::Keep: return before;
    case core::TimerPlan::Op::Stop: return {};
    case core::TimerPlan::Op::Start: return {TimerState::Running, granted, granted};
    case core::TimerPlan::Op::Extend:
      return {TimerState::Running, std::max(granted, before.remaining.value_or(granted)), granted};
  }
  return before;
}

core::Record applied(const core::Record& before, const core::Change& change, Millis granted) {
  core::Record after = before;
  if (change.own) after.own = change.own;
  if (change.pulse) after.pulse = *change.pulse;
  if (change.work) after.work = *change.work;
  after.timers.alive = started(change.alive, before.timers.alive, granted);
  after.timers.cap = started(change.cap, before.timers.cap, change.cap.length);
  after.timers.rest = started(change.rest, before.timers.rest, change.rest.length);
  after.timers.cool = started(change.cool, before.timers.cool, change.cool.length);
  return after;
}

bool writes(core::Outcome outcome) {
  switch (outcome) {
    case core::Outcome::Granted:
    case core::Outcome::Renewed:
    case core::Outcome::Ended:
    case core::Outcome::Moved:
    case core::Outcome::Noted: return true;
    case core::Outcome::Replayed:
    case core::Outcome::EndedBefore:
    case core::Outcome::MovedBefore:
    case core::Outcome::Holds:
    case core::Outcome::Refused:
    case core::Outcome::Lost: return false;
  }
  return false;
}

bool plain(const core::Timers& timers) {
  return timers.cap.state == TimerState::None && timers.rest.state == TimerState::None &&
         timers.cool.state == TimerState::None;
}

}  // namespace

Result<LeaseService::Settled> LeaseService::settle(const ResourceName& resource,
                                                   const core::Verb& verb, const api::Grip* grip,
                                                   OnUnknown on_unknown) {
  bool may_assume = grip != nullptr && grip->hint && grip->hint->plain && grip->owner;
  int unknowns = 0;
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto snapshot = may_assume ? Result<Snapshot>(assume(*grip)) : look(resource);
    if (!snapshot) return snapshot.error();
    const WallTime now = wall_of(*snapshot);
    const core::Decision decision =
        core::decide(snapshot->seen.record, verb, {.floor = snapshot->floor, .now_wall = now});
    Settled settled{.decision = decision,
                    .before = *snapshot,
                    .after = *snapshot,
                    .hint = {.own = snapshot->seen.own,
                             .alive = snapshot->seen.alive,
                             .plain = plain(snapshot->seen.record.timers)},
                    .granted_ttl = snapshot->seen.record.timers.alive.ttl.value_or(Millis(0))};
    if (!writes(decision.outcome)) return settled;
    if (decision.change.own && decision.change.own->token.number() > Token::kMax) {
      return unavailable("the tokens of this resource are used up");
    }
    auto steps = plan_steps(resource.text(), snapshot->seen, decision.change);
    for (auto& event : plan_events(resource.text(), snapshot->seen, verb, decision, now)) {
      steps.push_back(std::move(event));
    }
    auto answer = store_.commit(steps, sync_of(decision.change));
    if (!answer) {
      const bool again = answer.error().code == Code::UnknownOutcome &&
                         on_unknown == OnUnknown::AskAgain && ++unknowns < kMostUnknowns;
      if (!again) return answer.error();
      may_assume = false;
      continue;
    }
    const auto* done = std::get_if<store::Committed>(&*answer);
    if (done == nullptr) {
      may_assume = false;
      continue;
    }
    if (decision.change.own && anchors_ != nullptr) {
      anchors_->remember({settled.before.generation, done->revision});
    }
    ledger_.appended();
    settled.granted_ttl = done->granted_ttl[1];
    settled.hint.own = done->versions[0];
    settled.hint.alive = done->versions[1];
    settled.after.seen.record = applied(snapshot->seen.record, decision.change, settled.granted_ttl);
    settled.hint.plain = plain(settled.after.seen.record.timers);
    settled.after.store_wall = done->store_wall;
    settled.after.store_time = done->store_time;
    return settled;
  }
  return too_busy(resource);
}

api::Lease LeaseService::lease_of(const Snapshot& snapshot) const {
  const core::Record& record = snapshot.seen.record;
  api::Lease lease;
  lease.resource = snapshot.resource;
  lease.generation = snapshot.generation.empty() ? life_.meta.generation : snapshot.generation;
  lease.state = core::state_of(record);
  lease.held = lease.state == core::State::Held;
  lease.note = record.work.note;
  if (!record.own) return lease;
  const core::Ownership& own = *record.own;
  lease.owner = own.owner;
  lease.token = own.token;
  lease.reason = own.reason;
  lease.by = own.by;
  lease.why = own.why;
  lease.ttl = record.timers.alive.ttl.value_or(own.terms.ttl);
  lease.acquired_at = own.acquired_at;
  if (record.work.progress_token == own.token) {
    lease.progress = record.work.progress;
    lease.progress_at = record.work.progress_at;
  }
  const Timer& alive = record.timers.alive;
  if (lease.state == core::State::Held || lease.state == core::State::Reserved) {
    lease.remaining = alive.remaining;
    if (record.timers.cap.state == TimerState::Running && record.timers.cap.remaining && alive.remaining) {
      lease.remaining = std::min(*alive.remaining, *record.timers.cap.remaining);
    }
    if (alive.remaining && alive.ttl) {
      lease.renewed_at = wall_of(snapshot) - (*alive.ttl - std::min(*alive.remaining, *alive.ttl));
    }
  }
  if (lease.state == core::State::Resting) lease.remaining = core::rest_left(record);
  return lease;
}

void LeaseService::note_refusal(const api::AcquireRequest& request, const api::Lease& lease) {
  if (!request.count_refusal) return;
  api::Event event;
  event.at = clock_.wall();
  event.kind = "refused_held";
  event.resource = request.resource.text();
  event.token = lease.token.number();
  event.owner = request.owner.text();
  event.details.emplace_back("held_by", lease.owner.text());
  ledger_.refused(event);
}

Result<api::AcquireAnswer> LeaseService::acquire(const api::AcquireRequest& request) {
  if (auto ok = core::check_terms(request.terms); !ok) return ok.error();
  if (request.terms.ttl < smallest_ttl()) {
    return invalid(cat("a ttl of ", format_duration(request.terms.ttl), " is too short for this store; ",
                       format_duration(smallest_ttl()), " is the least"));
  }
  core::Acquire verb{.owner = request.owner,
                     .claim = request.claim.hash(),
                     .terms = request.terms,
                     .note = request.note,
                     .retake = request.retake ? request.retake->hash() : ClaimHash()};
  auto settled = settle(request.resource, verb, nullptr, OnUnknown::AskAgain);
  if (!settled) {
    return std::move(settled.error()).during(cat("acquiring ", quoted(request.resource.text())));
  }
  const core::Record& before = settled->before.seen.record;
  const api::Lease lease = lease_of(settled->after);
  if (settled->decision.outcome == core::Outcome::Refused) {
    note_refusal(request, lease);
    return api::AcquireAnswer(api::Refused{lease, lease.remaining});
  }
  api::Granted granted{.lease = lease,
                       .hint = settled->hint,
                       .replayed = settled->decision.outcome == core::Outcome::Replayed,
                       .previous_progress = {},
                       .store_time = settled->after.store_time};
  if (before.work.progress_token < lease.token) granted.previous_progress = before.work.progress;
  return api::AcquireAnswer(std::move(granted));
}

Result<api::HoldAnswer> LeaseService::hold(const api::Grip& grip, const core::Verb& verb,
                                           OnUnknown on_unknown) {
  auto settled = settle(grip.resource, verb, &grip, on_unknown);
  if (!settled) return settled.error();
  const api::Lease lease = lease_of(settled->after);
  if (settled->decision.outcome == core::Outcome::Lost) {
    return api::HoldAnswer(api::Lost{settled->decision.cause, lease});
  }
  return api::HoldAnswer(api::Held{lease, settled->granted_ttl, settled->after.store_time});
}

namespace {

core::Proof proof_of(const api::Grip& grip) {
  return {.token = grip.token, .claim = grip.claim.hash(), .owner = grip.owner};
}

}  // namespace

Result<api::HoldAnswer> LeaseService::renew(const api::Grip& grip, Millis ttl) {
  if (ttl < smallest_ttl()) {
    return invalid(cat("a ttl of ", format_duration(ttl), " is too short for this store"));
  }
  return hold(grip, core::Renew{proof_of(grip), ttl}, OnUnknown::Say);
}

Result<api::HoldAnswer> LeaseService::release(const api::Grip& grip, bool fence) {
  if (fence) {
    // Moves the token: needs the floor and the history, so it reads.
    api::Grip reading = grip;
    reading.hint.reset();
    return hold(reading, core::Release{proof_of(grip), true}, OnUnknown::Say);
  }
  return hold(grip, core::Release{proof_of(grip), false}, OnUnknown::AskAgain);
}

Result<api::HoldAnswer> LeaseService::stall(const api::Grip& grip) {
  return hold(grip, core::Stall{proof_of(grip)}, OnUnknown::AskAgain);
}

Result<api::HoldAnswer> LeaseService::check(const api::Grip& grip) {
  api::Grip reading = grip;
  reading.hint.reset();
  return hold(reading, core::Check{proof_of(grip)}, OnUnknown::Say);
}

Result<api::HoldAnswer> LeaseService::progress(const api::Grip& grip, const std::string& marker) {
  constexpr std::size_t kMostBytes = 1024;
  if (marker.size() > kMostBytes || !is_utf8(marker) || has_control(marker)) {
    return invalid(cat("a progress marker is at most ", kMostBytes, " bytes of UTF-8 in one line"));
  }
  api::Grip reading = grip;
  reading.hint.reset();
  return hold(reading, core::Progress{proof_of(grip), marker}, OnUnknown::AskAgain);
}

Result<api::HoldAnswer> LeaseService::order(const api::OrderRequest& request, const core::Verb& verb) {
  auto settled = settle(request.resource, verb, nullptr, OnUnknown::AskAgain);
  if (!settled) return settled.error();
  const api::Lease lease = lease_of(settled->after);
  if (settled->decision.outcome == core::Outcome::Lost) {
    return api::HoldAnswer(api::Lost{settled->decision.cause, lease});
  }
  return api::HoldAnswer(api::Held{lease, settled->granted_ttl, settled->after.store_time});
}

namespace {

constexpr std::size_t kMostWhyBytes = 1024;

Status check_order(const api::OrderRequest& request) {
  for (const std::string* text : {&request.why, &request.by}) {
    if (text->empty() || text->size() > kMostWhyBytes || !is_utf8(*text) || has_control(*text)) {
      return invalid(cat("why and by are 1 to ", kMostWhyBytes, " bytes of UTF-8 in one line"));
    }
  }
  return {};
}

core::Order order_of(const api::OrderRequest& request, Random& random) {
  return {.expected = request.expected, .why = request.why, .by = request.by, .id = random.id_hex()};
}

}  // namespace

Result<api::HoldAnswer> LeaseService::transfer(const api::OrderRequest& request, const Owner& to,
                                               Millis ttl) {
  if (auto ok = check_order(request); !ok) return ok.error();
  return order(request, core::Transfer{order_of(request, random_), to, ttl});
}

Result<api::HoldAnswer> LeaseService::revoke(const api::OrderRequest& request, core::Reason reason) {
  if (auto ok = check_order(request); !ok) return ok.error();
  return order(request, core::Revoke{order_of(request, random_), reason});
}

Result<api::Lease> LeaseService::get(const ResourceName& resource) {
  auto snapshot = look(resource);
  if (!snapshot) return snapshot.error();
  return lease_of(*snapshot);
}

Result<std::vector<api::Lease>> LeaseService::list(const api::Page& page) {
  auto owns = store_.scan({.prefix = own_key(page.prefix),
                           .after = page.after.empty() ? "" : own_key(page.after),
                           .limit = page.limit,
                           .backwards = false});
  if (!owns) return owns.error();
  std::vector<api::Lease> leases;
  constexpr std::size_t kOwnPrefix = 4;  // "own/"
  for (const store::Entry& entry : owns->entries) {
    auto name = ResourceName::parse(std::string_view(entry.key).substr(kOwnPrefix));
    if (!name) return name.error();
    auto lease = get(*name);
    if (!lease) return lease.error();
    leases.push_back(std::move(*lease));
  }
  return leases;
}

Result<std::vector<api::PastGrant>> LeaseService::history(const ResourceName& resource,
                                                          std::size_t limit) {
  auto snapshot = look(resource);
  if (!snapshot) return snapshot.error();
  std::vector<api::PastGrant> out;
  const core::Record& record = snapshot->seen.record;
  if (record.own) {
    api::PastGrant present{.token = record.own->token,
                           .owner = record.own->owner,
                           .reason = record.own->reason,
                           .by = record.own->by,
                           .why = record.own->why,
                           .acquired_at = record.own->acquired_at,
                           .ended_at = std::nullopt,
                           .ended = std::nullopt};
    if (const auto past = core::past_of(record, wall_of(*snapshot))) {
      present.ended = past->ended;
      present.ended_at = past->ended_at;
    }
    out.push_back(std::move(present));
  }
  auto ended = store_.scan(
      {.prefix = history_prefix(resource.text()), .after = "", .limit = limit, .backwards = true});
  if (!ended) return ended.error();
  for (const store::Entry& entry : ended->entries) {
    auto past = decode_past(entry.value);
    if (!past) return past.error();
    out.push_back(std::move(*past));
  }
  if (out.size() > limit) out.resize(limit);
  return out;
}

// The floor goes up to the token before the record goes, in one step: the name starts above it again. G1
Result<Token> LeaseService::forget(const ResourceName& resource) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto snapshot = look(resource);
    if (!snapshot) return snapshot.error();
    const Seen& seen = snapshot->seen;
    if (!seen.record.own) return invalid(cat("there is no record of ", quoted(resource.text())));
    if (core::state_of(seen.record) != core::State::Free) {
      return Error{Code::Held, cat(quoted(resource.text()), " is ",
                                   core::word(core::state_of(seen.record)),
                                   "; only a free one can be forgotten")};
    }
    auto reading = store_.read({std::string(kMetaKey)});
    if (!reading) return reading.error();
    auto meta = decode_meta(reading->entries.front().value);
    if (!meta) return meta.error();
    meta->floor = std::max(meta->floor, seen.record.own->token);
    auto answer = store_.commit(plan_forget(resource.text(), seen, encode(*meta),
                                            reading->entries.front().version, wall_of(*snapshot)),
                                store::Sync::Durable);
    if (!answer) return answer.error();
    if (std::holds_alternative<store::Conflict>(*answer)) continue;
    if (auto dropped = drop_history(resource); !dropped) return dropped.error();
    return meta->floor;
  }
  return too_busy(resource);
}

// The history goes after the record: lines of a forgotten name harm nobody if this is cut short.
Status LeaseService::drop_history(const ResourceName& resource) {
  while (true) {
    auto lines = store_.scan({.prefix = history_prefix(resource.text()),
                              .after = "",
                              .limit = store::Store::kMaxSteps,
                              .backwards = false});
    if (!lines) return lines.error();
    if (lines->entries.empty()) return {};
    std::vector<store::Step> steps;
    for (const store::Entry& entry : lines->entries) {
      store::Step step;
      step.kind = store::Step::Kind::Remove;
      step.key = entry.key;
      steps.push_back(std::move(step));
    }
    auto answer = store_.commit(steps, store::Sync::Relaxed);
    if (!answer) return answer.error();
  }
}

Result<std::unique_ptr<Watch>> LeaseService::watch(const ResourceName& resource) {
  return store_.watch(own_key(resource.text()));
}

}  // namespace stint::service
