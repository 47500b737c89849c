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
//
// A machine that was paused from outside may not know it. The store does: its own time stands in
// every answer. What has passed there and not here is taken off the deadline (G6), and where the
// two clocks part by more than drift it is reported, whichever of them was set (G4).
#pragma once

#include <functional>
#include <optional>

#include "base/random.h"
#include "base/time.h"
#include "core/lease.h"

namespace stint::core {

// Of a lease that a supervised run holds.
constexpr Millis kShortestRunTtl{1000};

struct HoldSettings {
  Millis ttl{90'000};
  Millis grace{0};   // between SIGTERM and SIGKILL
  Millis margin{0};  // to kill, and to see it dead
  Millis max_hold{
      0};  // zero: none. The holder counts it too: not every store tells how long it has
  Millis longest_beat{0};  // zero: none. What may end by itself meanwhile is looked at this often
};

// Grace defaults to min(10 s, ttl/6).
Millis default_grace(Millis ttl);
Millis default_margin(Millis ttl);

// Refuses settings whose inequality cannot hold: two renewals must fit before the deadline.
Status check_settings(const HoldSettings& settings);

// Whether the work has to end because it may not be held longer, granted at `granted_at`.
bool reached_max_hold(const HoldSettings& settings, MonoTime granted_at, MonoTime now);

// One answer: when it was asked for and when it was here on our clock, and in between the store's
// own.
struct Sighting {
  MonoTime sent_at{};
  MonoTime answered_at{};
  Nanos store_time{0};
};

// Compares the store's clock with ours from one answer to the next.
class StoreClock {
 public:
  // How far the store's clock was set against ours since the answer before; empty: what is seen is
  // within the time that the answers took and the drift of two clocks that are kept in order.
  std::optional<Nanos> saw(const Sighting& answer);

 private:
  std::optional<Sighting> last_;
};

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
  // The store's time in an answer; if it is the one that the deadline counts from, then after
  // renewed(). Another one that shows more time than has passed here brings the deadline nearer.
  void saw(const Sighting& answer);

 private:
  void count_from(MonoTime sent_at, Millis granted_ttl);

  HoldSettings settings_;
  std::reference_wrapper<Random> random_;
  MonoTime granted_at_;
  MonoTime sure_since_;
  MonoTime deadline_;
  MonoTime counted_deadline_;        // as counted, whatever was seen since
  std::optional<Sighting> counted_;  // the answer that it counts from
  MonoTime renew_at_;
  int failures_ = 0;
  std::optional<Cause> lost_;
};

}  // namespace stint::core
