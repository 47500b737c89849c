// The law of one lease: what each verb does in each state. Pure: no clock, no I/O, no threads.
//
//               Free        Held                     Reserved                  Resting
//   acquire     grant       same claim: replay       its owner: take up        refuse
//                           retake claim: re-take    (not while resting)
//                           else: refuse             else: refuse
//   renew       lost        extend                   lost                      lost
//   release     ended *     end                      lost                      ended *
//   stall       ended *     end (stalled)            lost                      ended *
//   transfer    reserve     reserve                  reserve                   reserve
//   revoke      revoke      revoke                   revoke                    revoke
//   progress    lost        note                     lost                      lost
//   check       lost        holds                    lost                      lost
//
//   * 0 also the second time, as long as the token did not move on; otherwise lost.
//   renew, release, stall, progress and check need the proof (token, claim, owner if given):
//   whoever shows another is told that it lost, and why. transfer and revoke need the expected
//   token.
//
// The caller commits a Change under two conditions, whatever the verb: the records are still the
// ones that were read, and every timer that runs or has fired still does (the store judges it
// inside the commit; checking at a read and committing later revives an expired lease). A conflict
// means: read and decide again. G1 G2 G3 G8
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/names.h"
#include "base/timer.h"

namespace stint::core {

// How ownership moved.
enum class Reason {
  First,
  Released,
  Expired,
  Retaken,
  Transferred,
  TakenUp,
  Revoked,
  Cancelled,
  Stalled,
  Recovered,
};
std::string_view word(Reason reason);
std::optional<Reason> parse_reason(std::string_view word);

// A zero max_hold, at_least or cooldown means "none".
struct Terms {
  Millis ttl{0};
  Millis max_hold{0};  // the longest that one grant may be renewed to
  Millis at_least{0};  // nobody acquires before start + at_least
  Millis cooldown{0};  // nobody acquires before an unclean end + cooldown
};
// At_least or ttl beyond max_hold cannot both be kept; none is negative or longer than a year.
Status check_terms(const Terms& terms);

// Record own/R: changes only with ownership.
struct Ownership {
  Token token;
  Owner owner;      // empty: belongs to nobody (revoked)
  ClaimHash claim;  // empty: nobody has claimed it
  Reason reason = Reason::First;
  std::string by;     // for transfer and revoke: who ordered it
  std::string why;    // and why
  std::string order;  // and the id of that order, so that a lost answer can be asked for again
  WallTime acquired_at{};
  Terms terms;
};

// Record alive/R: how the present ownership stands. Its timer is the lease's.
enum class Standing { Granted, Reserved, Released, Stalled, Revoked };
std::string_view word(Standing standing);
std::optional<Standing> parse_standing(std::string_view word);

struct Pulse {
  Standing standing = Standing::Released;
  std::optional<WallTime> ended_at;
};

// Record work/R: what the holder says of its work. The last progress outlives its reporter, so that
// the successor can go on from there.
struct Work {
  std::string note;
  std::string progress;
  std::optional<WallTime> progress_at;
  Token progress_token;
};

// alive: the lease. cap: max_hold since the grant. rest: at_least since the grant, and cooldown
// since a re-take. cool: ttl + cooldown since the last renewal, or cooldown since an unclean end.
struct Timers {
  Timer alive;
  Timer cap;
  Timer rest;
  Timer cool;
};

struct Record {
  std::optional<Ownership> own;  // empty: nobody ever had it
  Pulse pulse;
  Work work;
  Timers timers;
};

enum class State { Free, Held, Reserved, Resting };
std::string_view word(State state);
State state_of(const Record& record);
// When a Resting record ends, as far as the store can tell.
std::optional<Millis> rest_left(const Record& record);

// ---- verbs

struct Acquire {
  Owner owner;
  ClaimHash claim;
  Terms terms;
  std::string note;
  ClaimHash retake;  // the present claim, to take a held lease again; empty: no
};
struct Proof {
  Token token;
  ClaimHash claim;
  std::optional<Owner> owner;  // given: must match too
};
struct Renew {
  Proof proof;
  Millis ttl{0};
};
struct Release {
  Proof proof;
  bool fence = false;  // also move the token, so that a straggler's write no longer counts
};
struct Stall {
  Proof proof;
};
struct Order {
  Token expected;
  std::string why;
  std::string by;
  std::string id;  // random, made by the client for this order
};
struct Transfer {
  Order order;
  Owner to;
  Millis ttl{0};  // zero: the lease's own
};
struct Revoke {
  Order order;
  Reason reason = Reason::Revoked;
};
struct Progress {
  Proof proof;
  std::string marker;
};
struct Check {
  Proof proof;
};
using Verb = std::variant<Acquire, Renew, Release, Stall, Transfer, Revoke, Progress, Check>;

// ---- decisions

struct TimerPlan {
  enum class Op {
    Keep,
    Stop,
    Start,   // fires in `length`
    Extend,  // fires in `length`, or when it would have, whichever is later
  };
  Op op = Op::Keep;
  Millis length{0};

  static TimerPlan start(Millis length) { return {Op::Start, length}; }
  static TimerPlan stop() { return {Op::Stop, {}}; }
};

// The grant that a change ends, for the history.
struct Past {
  Ownership own;
  Reason ended = Reason::Released;
  std::optional<WallTime> ended_at;
};

// What is to be written; what is empty or Keep stays as it is.
struct Change {
  std::optional<Ownership> own;
  std::optional<Pulse> pulse;
  std::optional<Work> work;
  TimerPlan alive;
  TimerPlan cap;
  TimerPlan rest;
  TimerPlan cool;
  std::optional<Past> past;
};

enum class Outcome {
  Granted,      // acquire: a new grant (or a reservation taken up)
  Replayed,     // acquire: the grant that this claim already has; nothing to write
  Renewed,      // renew
  Ended,        // release, stall
  EndedBefore,  // release, stall: it had ended already; nothing to write
  Moved,        // transfer, revoke
  MovedBefore,  // transfer, revoke: this very order was carried out already; nothing to write
  Noted,        // progress
  Holds,        // check; nothing to write
  Refused,      // acquire: another holds it, or nobody may have it yet; nothing to write
  Lost,         // not, or no longer, the holder; nothing to write
};

enum class Cause {
  None,
  Expired,
  Superseded,
  Released,
  Transferred,
  Revoked,
  Stalled,
  MaxHold,
  Restored,     // the token was issued, and the store does not know it: it went back in time
  NeverIssued,  // newer than the store, and nobody remembers that it was issued: mistyped, say
  NotHolder,    // right token, wrong claim or owner
  WrongToken,   // transfer, revoke: not the expected token
};
std::string_view word(Cause cause);

struct Decision {
  Outcome outcome = Outcome::Lost;
  Cause cause = Cause::None;
  Change change;  // empty when nothing is to be written
};

struct Context {
  Token floor;            // of the store: every grant is above it
  Token remembered = {};  // of this resource, as anybody outside the store knows that it was issued
  WallTime now_wall;      // for people
};

// How the present ownership ended; empty while it is held or reserved, or if there never was one.
std::optional<Past> past_of(const Record& record, WallTime now_wall);

Decision decide(const Record& record, const Verb& verb, const Context& context);

}  // namespace stint::core
