#include "service/lease_service.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "service/lease_plan.h"
#include "service/lease_snapshot.h"
#include "service/settling.h"

namespace stint::service {

LeaseService::LeaseService(store::Store& store, Ledger& ledger, const Life& life,
                           const Clock& clock, Random& random, Anchors* anchors)
    : store_(store),
      many_commits_(dynamic_cast<store::ManyCommits*>(&store)),
      ledger_(ledger),
      clock_(clock),
      random_(random),
      anchors_(anchors),
      generations_{life.meta.generation},
      generation_(&generations_.front()) {}

WallTime LeaseService::wall_of(const Snapshot& snapshot) const {
  return snapshot.store_wall.value_or(clock_.wall());
}

// A store that is set back may go on counting from where it was (Redis): whoever compares wants to
// know of the wall clock behind it.   G4
std::optional<Nanos> LeaseService::time_of(const Snapshot& snapshot) const {
  const bool wall = store_.capabilities().clock == store::Capabilities::ClockKind::Wall;
  if (wall && snapshot.store_wall) return Nanos(snapshot.store_wall->time_since_epoch());
  return snapshot.store_time;
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
      // Never shortened: what was longer stands as it was.
      if (before.remaining && *before.remaining > granted) return before;
      return {TimerState::Running, granted, granted};
  }
  return before;
}

void apply(core::Record& record, const core::Change& change, Millis granted) {
  if (change.own) record.own = change.own;
  if (change.pulse) record.pulse = *change.pulse;
  if (change.work) record.work = *change.work;
  core::Timers& timers = record.timers;
  timers.alive = started(change.alive, timers.alive, granted);
  timers.cap = started(change.cap, timers.cap, change.cap.length);
  timers.rest = started(change.rest, timers.rest, change.rest.length);
  timers.cool = started(change.cool, timers.cool, change.cool.length);
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

// How long a holder may trust it. Stores tell in milliseconds rounded up: one less of max_hold is
// never too long.   G6
Millis trusted(Millis granted, const Timer& cap) {
  if (cap.state != TimerState::Running || !cap.remaining) return granted;
  return std::max(Millis(1), std::min(granted, *cap.remaining - Millis(1)));
}

Millis age_of(const KeptAnswer& kept, WallTime now) {
  return std::max(Millis(0), std::chrono::duration_cast<Millis>(now - kept.at));
}

bool plain(const core::Timers& timers) {
  return timers.cap.state == TimerState::None && timers.rest.state == TimerState::None &&
         timers.cool.state == TimerState::None;
}

}  // namespace

Error lost_from_sight(const ResourceName& resource) {
  return {Code::UnknownOutcome, cat("the store did not answer, and ", quoted(resource.text()),
                                    " has moved on since: it may or may not have been done")};
}

// Each token is given once: another who has the one that was tried for proves that it was not got.
// Any other was given before it or after it.
bool went_elsewhere(const std::optional<Token>& tried, Token newest) {
  return tried && newest != *tried;
}

// Reads and decides, and makes the steps of what is to be written.
Status LeaseService::plan(const ResourceName& resource, const core::Verb& verb,
                          const api::Grip* grip, const api::Once* once, Planned& out) {
  out.assumed = grip != nullptr && assume(*grip, out.settled.after);
  if (!out.assumed) {
    const Further further = further_of(verb);
    auto reading = store_.read(look_keys(resource, further, once));
    if (!reading) return reading.error();
    auto seen = take_snapshot(resource, further, once, *reading, 0, out.settled.after);
    if (!seen) return seen;
  }
  return decide_on(out, verb, once);
}

LeaseService::Further LeaseService::further_of(const core::Verb& verb) {
  return std::holds_alternative<core::Acquire>(verb) ? Further::Sealed : Further::Nothing;
}

Status LeaseService::decide_on(Planned& out, const core::Verb& verb, const api::Once* once) {
  Settled& settled = out.settled;
  const WallTime now = wall_of(settled.after);
  const std::string& resource = settled.after.resource;
  core::Context context{.floor = settled.after.floor, .now_wall = now};
  settled.decision = core::decide(settled.after.seen.record, verb, context);
  if (settled.decision.cause == core::Cause::NeverIssued) {
    context.remembered = remembered(resource);
    settled.decision = core::decide(settled.after.seen.record, verb, context);
  }
  if (settled.after.kept) {
    if (settled.after.kept->digest != once->digest) return api::once_mismatch();
    settled.replayed = true;
    return {};
  }
  const core::Decision& decision = settled.decision;
  const Seen& seen = settled.after.seen;
  settled.hint = {.own = seen.own, .alive = seen.alive, .plain = plain(seen.record.timers)};
  settled.granted_ttl = seen.record.timers.alive.ttl.value_or(Millis(0));
  settled.work_before = seen.record.work;
  if (!writes(decision.outcome)) {
    if (once != nullptr) out.standing = kept_standing(*once, settled, verb, now);
    return {};
  }
  // A store whose leases went elsewhere gives no grant; who held one there still learns that it
  // ended.
  if (decision.change.own && !settled.after.usable) return settled.after.usable.error();
  if (decision.change.own && decision.change.own->token.number() > Token::kMax) {
    return unavailable("the tokens of this resource are used up");
  }
  out.steps = plan_steps(resource, seen, decision.change);
  for (auto& event : plan_events(resource, seen, verb, decision, now)) {
    out.steps.push_back(std::move(event));
  }
  if (once != nullptr) out.steps.push_back(kept_answer(*once, settled, verb, now));
  return {};
}

Result<LeaseService::Settled> LeaseService::settle(const ResourceName& resource,
                                                   const core::Verb& verb, const api::Grip* grip,
                                                   OnUnknown on_unknown, const api::Once* once) {
  bool may_assume = grip != nullptr && once == nullptr;
  int unknowns = 0;
  std::optional<Token> tried;  // of the first grant without an answer
  for (int tries = 0; tries < kMostTries; ++tries) {
    Planned planned;
    if (auto ok = plan(resource, verb, may_assume ? grip : nullptr, once, planned); !ok) {
      if (grip != nullptr && unknowns == 0 && is_went_back(ok.error())) return restored(resource);
      return unsettled(ok.error(), unknowns);
    }
    Settled& settled = planned.settled;
    if (settled.replayed) return std::move(settled);
    if (planned.steps.empty()) {
      if (planned.assumed) {
        may_assume = false;  // only what was read can say no
        continue;
      }
      const bool refused = settled.decision.outcome == core::Outcome::Refused;
      const auto& own = settled.after.seen.record.own;
      if (unknowns > 0 && (settled.decision.outcome == core::Outcome::Lost ||
                           (refused && went_elsewhere(tried, own ? own->token : Token())))) {
        return lost_from_sight(resource);
      }
      if (planned.standing.empty()) return std::move(settled);
    }
    const bool stands = planned.steps.empty();
    auto answer = stands ? store_.commit(planned.standing, store::Sync::Durable)
                         : store_.commit(planned.steps, sync_of(settled.decision.change));
    if (!answer) {
      const bool again = answer.error().code == Code::UnknownOutcome &&
                         on_unknown == OnUnknown::AskAgain && ++unknowns < kMostUnknowns;
      if (const auto& own = settled.decision.change.own; own && !tried) tried = own->token;
      if (!again) return unsettled(answer.error(), unknowns);
      may_assume = false;
      continue;
    }
    const auto* done = std::get_if<store::Committed>(&*answer);
    if (done == nullptr) {
      may_assume = false;
      continue;
    }
    if (stands) return std::move(settled);
    committed(planned, *done);
    if (const auto anchor = anchor_of(planned, *done)) anchors_->remember(*anchor);
    return std::move(settled);
  }
  return unsettled(too_busy(resource), unknowns);
}

// What the world is after the commit.
void LeaseService::committed(Planned& planned, const store::Committed& done) {
  Settled& settled = planned.settled;
  const core::Change& change = settled.decision.change;
  if (change.own) remember_written(settled.after.resource, planned.steps[0].value, *change.own);
  ledger_.appended(done.revision);
  apply(settled.after.seen.record, change, done.granted_ttl[1]);
  settled.granted_ttl = trusted(done.granted_ttl[1], settled.after.seen.record.timers.cap);
  settled.hint = {.own = done.versions[0],
                  .alive = done.versions[1],
                  .plain = plain(settled.after.seen.record.timers)};
  settled.after.store_wall = done.store_wall;
  settled.after.store_time = done.store_time;
}

// What is to be remembered of a grant before anybody is told of it.   G12
std::optional<Anchor> LeaseService::anchor_of(const Planned& planned,
                                              const store::Committed& done) const {
  const core::Change& change = planned.settled.decision.change;
  if (!change.own || anchors_ == nullptr) return std::nullopt;
  return Anchor{planned.settled.after.generation, done.revision, change.own->token,
                witness_of(planned.settled.after.resource, *change.own)};
}

api::Lease LeaseService::lease_of(const Snapshot& snapshot) const {
  const core::Record& record = snapshot.seen.record;
  api::Lease lease;
  lease.resource = snapshot.resource;
  lease.generation = snapshot.generation.empty() ? generation() : snapshot.generation;
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
    if (record.timers.cap.state == TimerState::Running && record.timers.cap.remaining &&
        alive.remaining) {
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

Status LeaseService::check_ttl(Millis ttl) const {
  if (ttl < smallest_ttl()) {
    return invalid(cat("a ttl of ", format_duration(ttl), " is too short for this store; ",
                       format_duration(smallest_ttl()), " is the least"));
  }
  return core::check_terms({.ttl = ttl, .max_hold = {}, .at_least = {}, .cooldown = {}});
}

Result<core::Verb> LeaseService::verb_of(const api::AcquireRequest& request) const {
  if (auto ok = core::check_terms(request.terms); !ok) return ok.error();
  if (auto ok = check_ttl(request.terms.ttl); !ok) return ok.error();
  if (request.owner.empty()) return invalid("the owner is empty");
  if (request.note.size() > api::kMostNoteBytes || !is_utf8(request.note) ||
      has_control(request.note)) {
    return invalid(cat("a note is at most ", api::kMostNoteBytes, " bytes of UTF-8 in one line"));
  }
  return core::Verb(core::Acquire{.owner = request.owner,
                                  .claim = request.claim.hash(),
                                  .terms = request.terms,
                                  .note = request.note,
                                  .retake = request.retake ? request.retake->hash() : ClaimHash()});
}

Result<api::AcquireAnswer> LeaseService::acquire(const api::AcquireRequest& request) {
  auto verb = verb_of(request);
  if (!verb) return verb.error();
  auto settled = settle(request.resource, *verb, nullptr, OnUnknown::AskAgain,
                        request.once ? &*request.once : nullptr);
  if (!settled) {
    return std::move(settled.error()).during(cat("acquiring ", quoted(request.resource.text())));
  }
  return answer_of(request, std::move(*settled));
}

api::AcquireAnswer LeaseService::refusal_of(const api::AcquireRequest& request,
                                            const Settled& settled) {
  const api::Lease lease = lease_of(settled.after);
  note_refusal(request, lease);
  return api::AcquireAnswer(api::Refused{lease, lease.remaining});
}

Result<api::AcquireAnswer> LeaseService::answer_of(const api::AcquireRequest& request,
                                                   Settled&& settled) {
  if (settled.replayed) {
    const KeptAnswer& kept = *settled.after.kept;
    if (!kept.granted) return api::once_mismatch();
    api::Granted granted = *kept.granted;
    granted.replayed = true;
    granted.age = age_of(kept, wall_of(settled.after));
    granted.store_time = time_of(settled.after);
    granted.sealed = std::move(settled.after.sealed);
    granted.sealing = std::move(settled.after.sealing);
    return api::AcquireAnswer(std::move(granted));
  }
  if (settled.decision.outcome == core::Outcome::Refused) return refusal_of(request, settled);
  keep_in_mind(settled);
  api::Granted granted = granted_of(settled);
  granted.sealed = std::move(settled.after.sealed);
  granted.sealing = std::move(settled.after.sealing);
  return api::AcquireAnswer(std::move(granted));
}

api::Granted LeaseService::granted_of(const Settled& settled) const {
  api::Granted granted{.lease = lease_of(settled.after),
                       .hint = settled.hint,
                       .granted_ttl = settled.granted_ttl,
                       .replayed = settled.decision.outcome == core::Outcome::Replayed,
                       .previous_progress = {},
                       .store_time = time_of(settled.after)};
  const core::Work& before = settled.work_before;
  if (before.progress_token < granted.lease.token) granted.previous_progress = before.progress;
  return granted;
}

api::Held LeaseService::held_of(const Settled& settled) const {
  const core::Outcome outcome = settled.decision.outcome;
  return {
      .lease = lease_of(settled.after),
      .granted_ttl = settled.granted_ttl,
      .store_time = time_of(settled.after),
      .replayed = outcome == core::Outcome::EndedBefore || outcome == core::Outcome::MovedBefore};
}

// A store may grant a little more than was asked, and its clock moves on until the commit: the
// answer that is kept has neither. Who gets it again is told its age.
store::Step LeaseService::kept_answer(const api::Once& once, const Settled& settled,
                                      const core::Verb& verb, WallTime now) const {
  Settled after = settled;
  if (writes(settled.decision.outcome)) {
    const core::Change& change = settled.decision.change;
    apply(after.after.seen.record, change, change.alive.length);
    after.granted_ttl = change.alive.length;
  }
  KeptAnswer kept{.digest = once.digest, .at = now, .granted = std::nullopt, .held = std::nullopt};
  if (std::holds_alternative<core::Acquire>(verb)) {
    kept.granted = granted_of(after);
    kept.granted->hint = {.own = 0, .alive = 0, .plain = false};
    kept.granted->store_time.reset();
  } else {
    kept.held = held_of(after);
    kept.held->store_time.reset();
  }
  return keep_answer(once, kept);
}

Result<api::HoldAnswer> LeaseService::answer_of(Settled&& settled) {
  if (settled.replayed) {
    const KeptAnswer& kept = *settled.after.kept;
    if (!kept.held) return api::once_mismatch();
    api::Held held = *kept.held;
    held.replayed = true;
    held.age = age_of(kept, wall_of(settled.after));
    held.store_time = time_of(settled.after);
    return api::HoldAnswer(std::move(held));
  }
  if (settled.decision.outcome == core::Outcome::Lost) {
    return api::HoldAnswer(
        api::Lost{settled.decision.cause, lease_of(settled.after), time_of(settled.after)});
  }
  if (settled.decision.change.alive.op == core::TimerPlan::Op::Extend) runs_on(settled);
  return api::HoldAnswer(held_of(settled));
}

Result<api::HoldAnswer> LeaseService::hold(const api::Grip& grip, const core::Verb& verb,
                                           OnUnknown on_unknown) {
  auto settled = settle(grip.resource, verb, &grip, on_unknown, grip.once ? &*grip.once : nullptr);
  if (!settled) return settled.error();
  return answer_of(std::move(*settled));
}

Result<api::HoldAnswer> LeaseService::renew(const api::Grip& grip, Millis ttl) {
  if (auto ok = check_ttl(ttl); !ok) return ok.error();
  if (!grip.once) return hold(grip, core::Renew{proof_of(grip), ttl}, OnUnknown::Say);
  api::Grip anew = grip;
  anew.once.reset();
  return hold(anew, core::Renew{proof_of(anew), ttl}, OnUnknown::Say);
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
  reading.once.reset();
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

Result<api::HoldAnswer> LeaseService::order(const api::OrderRequest& request,
                                            const core::Verb& verb) {
  auto settled = settle(request.resource, verb, nullptr, OnUnknown::AskAgain,
                        request.once ? &*request.once : nullptr);
  if (!settled) return settled.error();
  return answer_of(std::move(*settled));
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
  return {
      .expected = request.expected, .why = request.why, .by = request.by, .id = random.id_hex()};
}

}  // namespace

Result<api::HoldAnswer> LeaseService::transfer(const api::OrderRequest& request, const Owner& to,
                                               Millis ttl) {
  if (auto ok = check_order(request); !ok) return ok.error();
  if (to.empty()) return invalid("the owner to transfer to is empty");
  if (ttl.count() != 0) {
    if (auto ok = check_ttl(ttl); !ok) return ok.error();
  }
  return order(request, core::Transfer{order_of(request, random_), to, ttl});
}

Result<api::HoldAnswer> LeaseService::revoke(const api::OrderRequest& request,
                                             core::Reason reason) {
  if (auto ok = check_order(request); !ok) return ok.error();
  return order(request, core::Revoke{order_of(request, random_), reason});
}

}  // namespace stint::service
