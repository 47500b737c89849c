// When to renew, where the deadline is, and what an answer means: the holder's rules without any
// I/O.
//
//   |<------------------------------ ttl ------------------------------>|
//   sent            renew (ttl/3)                  deadline   kill        expiry at the store
//   |---------------|------------------------------|----------|-----------|
//                                                  stop: TERM  KILL  seen dead
//
// The deadline counts from BEFORE the request was sent whose effect was acknowledged (the store's
// clock starts later, so it ends later), less the time to stop the work and ttl/1000 for drift. G6
// G7 A failed renewal is unknown, never lost: it is repeated quickly until the deadline. Heartbeats
// go on also near the deadline; a renewal that is acknowledged in time moves it.
#pragma once

#include <functional>
#include <optional>

#include "base/random.h"
#include "base/time.h"
#include "core/lease.h"

namespace stint::core {

struct HoldSettings {
  Millis ttl{90'000};
  Millis grace{0};   // between SIGTERM and SIGKILL
  Millis margin{0};  // to kill, and to see it dead
  Millis max_hold{
      0};  // zero: none. The holder counts it too: not every store tells how long it has
};

// Grace defaults to min(10 s, ttl/6).
Millis default_grace(Millis ttl);
Millis default_margin(Millis ttl);

// Refuses settings whose inequality cannot hold: two renewals must fit before the deadline.
Status check_settings(const HoldSettings& settings);

class HolderPolicy {
 public:
  // The grant (or the renewal that it counts from) was sent at `sent_at` and acknowledged with this
  // ttl.
  HolderPolicy(const HoldSettings& settings, MonoTime sent_at, Millis granted_ttl, Random& random);

  enum class Standing {
    Holding,  // within the deadline
    Overdue,  // the deadline has passed: stop the work
    Lost,     // the store said so: stop the work
  };
  Standing standing(MonoTime now) const;
  std::optional<Cause> lost_cause() const { return lost_; }

  // When the work must begin to stop, and when it must be killed if it has not.
  MonoTime deadline() const { return deadline_; }
  MonoTime kill_at() const { return deadline_ + settings_.grace; }
  MonoTime renew_at() const { return renew_at_; }
  // When the lease was last known to be ours (the sending of the last acknowledged request).
  MonoTime sure_since() const { return sure_since_; }
  bool unsure() const { return failures_ > 0; }

  // ttl: as granted by the store, which may differ from what was asked. `now`: when the answer was
  // there. One that comes after the deadline does not move it: whether the work is stopped after a
  // suspend must not hang on who wakes up first.
  void renewed(MonoTime sent_at, Millis granted_ttl, MonoTime now);
  // No answer, or a fault: it may have happened. Tried again soon.
  void unknown(MonoTime now);
  void lost(Cause cause) { lost_ = cause; }

 private:
  void count_from(MonoTime sent_at, Millis granted_ttl);

  HoldSettings settings_;
  std::reference_wrapper<Random> random_;
  MonoTime granted_at_;
  MonoTime sure_since_;
  MonoTime deadline_;
  MonoTime renew_at_;
  int failures_ = 0;
  std::optional<Cause> lost_;
};

}  // namespace stint::core
