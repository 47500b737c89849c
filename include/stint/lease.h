// A lease as the outside sees it, and the two refusals: another has it, and you have it no longer.
//
// Times are for people: `remaining` counts on the store's clock, `*_at` is somebody's wall clock.
// Decide by Holder::stop_token(), Holder::holding() and the token, never by these.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stint {

using SysTime = std::chrono::sys_time<std::chrono::milliseconds>;

struct Lease {
  std::string resource;
  bool held = false;
  std::string state;        // free, held, reserved, resting
  std::string owner;        // the label of the run that has it, or had it last; never a proof
  std::uint64_t token = 0;  // zero: nobody ever had it
  std::string generation;   // tokens of different generations do not compare
  std::string reason;       // how ownership moved last: first, released, expired, revoked ...
  std::string by;           // who ordered that, and why: transfer and revoke only
  std::string why;
  std::chrono::milliseconds ttl{0};
  std::optional<std::chrono::milliseconds> remaining;  // empty: unknown, or nothing to run out
  std::optional<SysTime> acquired_at;
  std::optional<SysTime> renewed_at;
  std::string note;
  std::string progress;
  std::optional<SysTime> progress_at;
};

// Another has it, or nobody may have it yet (state "resting"). An answer, not a fault: a run that
// is waved off is no failure.
struct Refused {
  std::string resource;
  std::string owner;
  std::uint64_t token = 0;
  std::string state;                                   // held, reserved, resting
  std::optional<SysTime> since;                        // when it was acquired
  std::optional<std::chrono::milliseconds> remaining;  // until it runs out, unless renewed
  std::string note;                                    // what the owner says that it is doing
  std::string progress;                                // and how far it has come
  std::optional<std::chrono::milliseconds> retry_in;   // when it may be free, if that can be told
};

// Why a lease is held no longer.
enum class Cause {
  Expired,      // it ran out at the store
  Superseded,   // another has a newer token
  Released,     // it was given back, by you or by whoever has your claim
  Transferred,  // an operator gave it to another
  Revoked,      // an operator took it away
  Stalled,      // it was ended for lack of progress
  MaxHold,      // the longest time that one grant may last is over
  Restored,     // the store went back in time and does not know this token
  NotHolder,    // right token, wrong claim or owner
  WrongToken,   // revoke, transfer: the token is not the expected one
  Deadline,     // no renewal was acknowledged in time: the store does not answer, or the machine
                // slept. The store may still count the lease as held until its ttl is over.
};
// The same words as in `stint --json`: "expired", "max_hold", "deadline" ...
std::string_view word(Cause cause);

struct Lost {
  Cause cause = Cause::Expired;
  std::uint64_t token = 0;  // the one that counts no longer
  Lease now;                // as it stands at the store; with Cause::Deadline: only the resource
  std::string trouble;      // the last fault of the store, if renewals went unanswered
};

}  // namespace stint
