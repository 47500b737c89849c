#include "core/lease.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace stint::core {
namespace {

Token next_token(const Record& record, const Context& context) {
  const Token last = record.own ? record.own->token : Token();
  return std::max(last, context.floor).next();  // G1
}

Millis left(const Timer& timer) {
  return running(timer) ? timer.remaining.value_or(Millis(0)) : Millis(0);
}

TimerPlan start_or_stop(Millis length) {
  return length.count() > 0 ? TimerPlan::start(length) : TimerPlan::stop();
}

// How the present ownership would be recorded if it ended by what already happened to it.
Reason natural_end(Standing standing) {
  switch (standing) {
    case Standing::Granted: return Reason::Expired;
    case Standing::Reserved: return Reason::Expired;
    case Standing::Released: return Reason::Released;
    case Standing::Stalled: return Reason::Stalled;
    case Standing::Revoked: return Reason::Revoked;
  }
  return Reason::Expired;
}

bool has_ended(const Record& record) {
  const State state = state_of(record);
  return state == State::Free || state == State::Resting;
}

// When an expired grant ended, on the wall clock, as far as the store can tell.
std::optional<WallTime> expired_at(const Record& record, const Context& context) {
  const Timer& timer = fired(record.timers.cap) ? record.timers.cap : record.timers.alive;
  if (!timer.remaining) return std::nullopt;
  return context.now_wall + *timer.remaining;
}

// The history line of the ownership that a change takes away.
std::optional<Past> close(const Record& record, Reason moved, const Context& context) {
  if (!record.own) return std::nullopt;
  if (!has_ended(record)) return Past{*record.own, moved, context.now_wall};
  std::optional<WallTime> ended_at = record.pulse.ended_at;
  if (!ended_at) ended_at = expired_at(record, context);
  return Past{*record.own, natural_end(record.pulse.standing), ended_at};
}

// As far as the store can tell how long max_hold still has.
Millis within_cap(Millis ttl, const Timer& cap) {
  if (!running(cap) || !cap.remaining) return ttl;
  return std::max(Millis(1), std::min(ttl, *cap.remaining));
}

// ---- acquire

Decision refuse() { return {Outcome::Refused, Cause::None, {}}; }

Decision grant(const Record& record, const Acquire& bid, Reason reason, const Context& context) {
  Decision d{Outcome::Granted, Cause::None, {}};
  d.change.own = Ownership{.token = next_token(record, context),
                           .owner = bid.owner,
                           .claim = bid.claim,
                           .reason = reason,
                           .by = {},
                           .why = {},
                           .order = {},
                           .acquired_at = context.now_wall,
                           .terms = bid.terms};
  d.change.pulse = Pulse{Standing::Granted, std::nullopt};
  d.change.alive = TimerPlan::start(bid.terms.ttl);
  d.change.cap = start_or_stop(bid.terms.max_hold);
  d.change.rest = start_or_stop(bid.terms.at_least);
  const bool cools = bid.terms.cooldown.count() > 0;
  d.change.cool = start_or_stop(cools ? bid.terms.ttl + bid.terms.cooldown : Millis(0));
  if (bid.note != record.work.note) {
    d.change.work = record.work;
    d.change.work->note = bid.note;
  }
  d.change.past = close(record, reason, context);
  return d;
}

Decision grant_free(const Record& record, const Acquire& bid, const Context& context) {
  const Reason reason = record.own ? natural_end(record.pulse.standing) : Reason::First;
  return grant(record, bid, reason, context);
}

// Its holder takes it again under a new claim; the earlier use is fenced out. The age for max_hold
// goes on: nobody prolongs it by re-taking, and the lease ends with it at the latest. Nor does a
// re-take cut at_least short; and being the unclean end of the earlier use, it starts that one's
// cooldown. Both stand in the rest timer, because a clean release of the new grant stops the other.
Decision retake(const Record& record, const Acquire& bid, const Context& context) {
  Decision d = grant(record, bid, Reason::Retaken, context);
  if (running(record.timers.cap)) {
    const Millis ttl = within_cap(bid.terms.ttl, record.timers.cap);
    d.change.cap = {};
    d.change.alive = TimerPlan::start(ttl);
    if (bid.terms.cooldown.count() > 0) d.change.cool = TimerPlan::start(ttl + bid.terms.cooldown);
  }
  const Millis rest = std::max(bid.terms.at_least, record.own->terms.cooldown);
  d.change.rest = start_or_stop(rest);
  if (running(record.timers.rest)) {
    d.change.rest = rest.count() > 0 ? TimerPlan{TimerPlan::Op::Extend, rest} : TimerPlan{};
  }
  return d;
}

Decision acquire_held(const Record& record, const Acquire& bid, const Context& context) {
  if (record.own->claim.matches(bid.claim)) return {Outcome::Replayed, Cause::None, {}};
  if (record.own->claim.matches(bid.retake)) return retake(record, bid, context);
  return refuse();  // G2, also for the same owner label
}

// The first acquire under the label that it was transferred to gets that very token, once.
Decision acquire_reserved(const Record& record, const Acquire& bid, const Context& context) {
  if (bid.owner != record.own->owner) return refuse();
  if (running(record.timers.rest) || running(record.timers.cool)) return refuse();
  Decision d = grant(record, bid, Reason::TakenUp, context);
  d.change.own->token = record.own->token;
  d.change.own->by = record.own->by;
  d.change.own->why = record.own->why;
  d.change.past.reset();
  return d;
}

// ---- the holder's verbs

Cause how_it_moved(const Ownership& now, Token before) {
  if (now.token != before.next()) return Cause::Superseded;
  // It belongs to nobody: an operator's verb, or a release that moved the token.
  if (now.owner.empty()) {
    return now.reason == Reason::Released ? Cause::Released : Cause::Revoked;
  }
  switch (now.reason) {
    case Reason::Transferred: return Cause::Transferred;
    case Reason::TakenUp: return Cause::Transferred;
    case Reason::Revoked: return Cause::Revoked;
    case Reason::Cancelled: return Cause::Revoked;
    case Reason::Stalled: return Cause::Superseded;
    case Reason::First: return Cause::Superseded;
    case Reason::Released: return Cause::Superseded;
    case Reason::Expired: return Cause::Superseded;
    case Reason::Retaken: return Cause::Superseded;
    case Reason::Recovered: return Cause::Restored;
  }
  return Cause::Superseded;
}

// None if the proof is the present owner's, whether or not the lease still runs.
Cause refute(const Record& record, const Proof& proof, const Context& context) {
  const Token newest = record.own ? record.own->token : context.floor;
  if (proof.token > newest) {
    // A number proves nothing: only who knows that it was issued knows that it is gone.   G12
    return proof.token <= context.remembered ? Cause::Restored : Cause::NeverIssued;
  }
  if (!record.own) return Cause::Superseded;
  if (proof.token < record.own->token) return how_it_moved(*record.own, proof.token);
  if (!record.own->claim.matches(proof.claim)) return Cause::NotHolder;
  if (proof.owner && *proof.owner != record.own->owner) return Cause::NotHolder;
  return Cause::None;
}

Cause how_it_ended(const Record& record) {
  switch (record.pulse.standing) {
    case Standing::Granted: return fired(record.timers.cap) ? Cause::MaxHold : Cause::Expired;
    case Standing::Reserved: return Cause::Transferred;
    case Standing::Released: return Cause::Released;
    case Standing::Stalled: return Cause::Stalled;
    case Standing::Revoked: return Cause::Revoked;
  }
  return Cause::Expired;
}

Decision lost(Cause cause) { return {Outcome::Lost, cause, {}}; }

// Never shortens (Extend), never past max_hold.   G3
Decision renew_held(const Record& record, const Renew& verb) {
  Decision d{Outcome::Renewed, Cause::None, {}};
  const Millis ttl = within_cap(verb.ttl, record.timers.cap);
  d.change.alive = {TimerPlan::Op::Extend, ttl};
  if (record.own->terms.cooldown.count() > 0) {
    d.change.cool = {TimerPlan::Op::Extend, ttl + record.own->terms.cooldown};
  }
  return d;
}

Decision end(const Record& record, Standing standing, const Context& context) {
  Decision d{Outcome::Ended, Cause::None, {}};
  d.change.pulse = Pulse{standing, context.now_wall};
  d.change.alive = TimerPlan::stop();
  d.change.cap = TimerPlan::stop();
  const bool clean = standing == Standing::Released;
  d.change.cool = start_or_stop(clean ? Millis(0) : record.own->terms.cooldown);
  return d;
}

// A release that also moves the token: it belongs to nobody from here on.
Decision end_and_fence(const Record& record, const Context& context) {
  Decision d = end(record, Standing::Released, context);
  if (has_ended(record)) d.change.cool = {};  // a cooldown that already runs goes on
  d.change.past = close(record, Reason::Released, context);
  d.change.own = Ownership{.token = next_token(record, context),
                           .owner = {},
                           .claim = {},
                           .reason = Reason::Released,
                           .by = record.own->owner.text(),
                           .why = "released with a fence",
                           .order = {},
                           .acquired_at = context.now_wall,
                           .terms = record.own->terms};
  return d;
}

Decision note_progress(const Record& record, const Progress& verb, const Context& context) {
  Decision d{Outcome::Noted, Cause::None, {}};
  d.change.work = record.work;
  d.change.work->progress = verb.marker;
  d.change.work->progress_at = context.now_wall;
  d.change.work->progress_token = record.own->token;
  return d;
}

// ---- the operator's verbs: they work in every state, given the expected token

// A lost answer asked for again.
bool done_before(const Record& record, const Order& order) {
  return record.own && !order.id.empty() && record.own->order == order.id;
}

bool expected(const Record& record, const Order& order) {
  return record.own && record.own->token == order.expected;
}

Ownership ordered(const Record& record, const Order& order, Reason reason, const Context& context) {
  return {.token = next_token(record, context),
          .owner = {},
          .claim = {},
          .reason = reason,
          .by = order.by,
          .why = order.why,
          .order = order.id,
          .acquired_at = context.now_wall,
          .terms = record.own->terms};
}

// An order that ends a grant starts its cooldown; one on a grant that had ended changes nothing of
// it.
TimerPlan ordered_cooldown(const Record& record) {
  if (has_ended(record)) return {};
  return start_or_stop(record.own->terms.cooldown);
}

Decision reserve(const Record& record, const Transfer& verb, const Context& context) {
  if (done_before(record, verb.order)) return {Outcome::MovedBefore, Cause::None, {}};
  if (!expected(record, verb.order)) return lost(Cause::WrongToken);
  Decision d{Outcome::Moved, Cause::None, {}};
  d.change.own = ordered(record, verb.order, Reason::Transferred, context);
  d.change.own->owner = verb.to;
  if (verb.ttl.count() > 0) d.change.own->terms.ttl = verb.ttl;
  d.change.pulse = Pulse{Standing::Reserved, std::nullopt};
  d.change.cap = TimerPlan::stop();
  d.change.cool = ordered_cooldown(record);
  // It can be taken up only after the rest: the reservation outlasts that by its whole ttl.
  const Millis cool = has_ended(record) ? left(record.timers.cool) : d.change.cool.length;
  d.change.alive =
      TimerPlan::start(d.change.own->terms.ttl + std::max(left(record.timers.rest), cool));
  d.change.past = close(record, Reason::Transferred, context);
  return d;
}

Decision revoke(const Record& record, const Revoke& verb, const Context& context) {
  if (done_before(record, verb.order)) return {Outcome::MovedBefore, Cause::None, {}};
  if (!expected(record, verb.order)) return lost(Cause::WrongToken);
  Decision d{Outcome::Moved, Cause::None, {}};
  d.change.own = ordered(record, verb.order, verb.reason, context);
  d.change.pulse = Pulse{Standing::Revoked, context.now_wall};
  d.change.alive = TimerPlan::stop();
  d.change.cap = TimerPlan::stop();
  d.change.rest = TimerPlan::stop();  // only revoke cuts at_least short
  d.change.cool = ordered_cooldown(record);
  d.change.past = close(record, verb.reason, context);
  return d;
}

// ---- the table, a row a verb

struct Table {
  const Record& record;
  const Context& context;

  Decision operator()(const Acquire& bid) const {
    switch (state_of(record)) {
      case State::Free: return grant_free(record, bid, context);
      case State::Held: return acquire_held(record, bid, context);
      case State::Reserved: return acquire_reserved(record, bid, context);
      case State::Resting: return refuse();
    }
    return refuse();
  }

  Decision operator()(const Renew& verb) const {
    if (const Cause no = refute(record, verb.proof, context); no != Cause::None) return lost(no);
    switch (state_of(record)) {
      case State::Free: return lost(how_it_ended(record));
      case State::Held: return renew_held(record, verb);
      case State::Reserved: return lost(how_it_ended(record));
      case State::Resting: return lost(how_it_ended(record));
    }
    return lost(Cause::Expired);
  }

  Decision operator()(const Release& verb) const {
    const Cause no = refute(record, verb.proof, context);
    // Released before, and the token moved with it.
    if (no == Cause::Released) return {Outcome::EndedBefore, Cause::None, {}};
    if (no != Cause::None) return lost(no);
    if (verb.fence) return end_and_fence(record, context);
    return ending(Standing::Released);
  }

  Decision operator()(const Stall& verb) const {
    if (const Cause no = refute(record, verb.proof, context); no != Cause::None) return lost(no);
    return ending(Standing::Stalled);
  }

  Decision operator()(const Transfer& verb) const { return reserve(record, verb, context); }

  Decision operator()(const Revoke& verb) const { return revoke(record, verb, context); }

  Decision operator()(const Progress& verb) const {
    if (const Cause no = refute(record, verb.proof, context); no != Cause::None) return lost(no);
    switch (state_of(record)) {
      case State::Free: return lost(how_it_ended(record));
      case State::Held: return note_progress(record, verb, context);
      case State::Reserved: return lost(how_it_ended(record));
      case State::Resting: return lost(how_it_ended(record));
    }
    return lost(Cause::Expired);
  }

  Decision operator()(const Check& verb) const {
    if (const Cause no = refute(record, verb.proof, context); no != Cause::None) return lost(no);
    switch (state_of(record)) {
      case State::Free: return lost(how_it_ended(record));
      case State::Held: return {Outcome::Holds, Cause::None, {}};
      case State::Reserved: return lost(how_it_ended(record));
      case State::Resting: return lost(how_it_ended(record));
    }
    return lost(Cause::Expired);
  }

  Decision ending(Standing standing) const {
    switch (state_of(record)) {
      case State::Free: return {Outcome::EndedBefore, Cause::None, {}};
      case State::Held: return end(record, standing, context);
      case State::Reserved: return lost(Cause::Transferred);
      case State::Resting: return {Outcome::EndedBefore, Cause::None, {}};
    }
    return lost(Cause::Expired);
  }
};

}  // namespace

Status check_terms(const Terms& terms) {
  // Longer is a typing error, and it keeps every sum of times far from overflow.
  constexpr Millis kLongest = std::chrono::hours(24 * 366);
  for (const Millis length : {terms.ttl, terms.max_hold, terms.at_least, terms.cooldown}) {
    if (length.count() < 0)
      return invalid("ttl, max_hold, at_least and cooldown cannot be negative");
    if (length > kLongest)
      return invalid("ttl, max_hold, at_least and cooldown are a year at most");
  }
  if (terms.max_hold.count() == 0) return {};
  if (terms.ttl > terms.max_hold) return invalid("the ttl is longer than max_hold");
  if (terms.at_least > terms.max_hold) return invalid("at_least is longer than max_hold");
  return {};
}

State state_of(const Record& record) {
  if (!record.own) return State::Free;
  const Timers& t = record.timers;
  const bool resting = running(t.rest) || running(t.cool);
  const State ended = resting ? State::Resting : State::Free;
  switch (record.pulse.standing) {
    case Standing::Granted: return running(t.alive) && !fired(t.cap) ? State::Held : ended;
    case Standing::Reserved: return running(t.alive) ? State::Reserved : ended;
    case Standing::Released: return ended;
    case Standing::Stalled: return ended;
    case Standing::Revoked: return ended;
  }
  return ended;
}

std::optional<Millis> rest_left(const Record& record) {
  std::optional<Millis> longest;
  for (const Timer* timer : {&record.timers.rest, &record.timers.cool}) {
    if (!running(*timer)) continue;
    if (!timer->remaining) return std::nullopt;
    longest = std::max(longest.value_or(Millis(0)), *timer->remaining);
  }
  return longest;
}

std::optional<Past> past_of(const Record& record, WallTime now_wall) {
  if (!record.own || !has_ended(record)) return std::nullopt;
  return close(record, Reason::Expired, {.floor = {}, .now_wall = now_wall});
}

Decision decide(const Record& record, const Verb& verb, const Context& context) {
  return std::visit(Table{record, context}, verb);
}

}  // namespace stint::core
