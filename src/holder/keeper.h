// Keeps leases alive: renews them when it is time, and knows when they are lost. Driven by step(),
// so that the very same object runs on a thread (keeper_thread.h) and in a simulation.
//
// Thread safety: one thread calls step() and look(); any thread may ask for state().
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/leases.h"
#include "base/mutex.h"
#include "base/random.h"
#include "core/holder_policy.h"

namespace stint::holder {

struct Kept {
  api::Grip grip;
  MonoTime sent_at{};     // before the request was sent whose effect was acknowledged
  Millis granted_ttl{0};  // as the store granted it
  // An ancestor's: looked at as often as its holder renews it, never renewed or released by us.
  bool borrowed = false;
  Millis lent_ttl{0};  // borrowed: the lease's whole ttl; granted_ttl is what is left of it
  // The answer to that request: when it was here, and the store's own time in it.
  MonoTime answered_at{};
  std::optional<Nanos> store_time = std::nullopt;
};

struct KeeperState {
  enum class Standing { Holding, Overdue, Lost };
  Standing standing = Standing::Holding;
  MonoTime deadline{};  // when the work must begin to stop
  MonoTime kill_at{};
  bool unsure = false;               // renewals go unanswered
  std::optional<Nanos> least_slack;  // what was left before the deadline at the latest renewal
  std::optional<api::Lost> lost;
  std::string lost_resource;
  std::string trouble;   // the last fault, for people
  std::string progress;  // of the first lease, as last seen in the store
  std::optional<WallTime> progress_at;
};

class Keeper {
 public:
  // REQUIRES: `kept` is not empty. All references must outlive the keeper.
  Keeper(api::Leases& leases, const Clock& clock, Random& random,
         const core::HoldSettings& settings, std::vector<Kept> kept);

  // Sends the renewals that are due; returns when to call again.
  MonoTime step();
  // Reads the leases now: something may have changed.
  void look();

  KeeperState state() const;
  MonoTime next() const;
  // By how much the store's clock was set against ours since this was last asked; empty: not.   G4
  std::optional<Millis> take_step();

 private:
  struct One {
    Kept kept;
    std::optional<core::HolderPolicy>
        policy;  // empty: borrowed, and the store cannot tell how long
  };
  core::HoldSettings settings_for(const Kept& kept) const;
  void answer(One& one, MonoTime sent_at, const Result<api::HoldAnswer>& answer, bool due)
      REQUIRES(mutex_);
  void note_lost(const One& one, const api::Lost& lost) REQUIRES(mutex_);
  void compare(One& one, MonoTime sent_at, const api::HoldAnswer& answer) REQUIRES(mutex_);

  api::Leases& leases_;
  const Clock& clock_;
  Random& random_;
  const core::HoldSettings settings_;

  mutable Mutex mutex_;
  std::vector<One> all_ GUARDED_BY(mutex_);
  core::StoreClock store_clock_ GUARDED_BY(mutex_);  // one store, whatever the lease
  std::optional<Nanos> stepped_ GUARDED_BY(mutex_);
  std::optional<api::Lost> lost_ GUARDED_BY(mutex_);
  std::string lost_resource_ GUARDED_BY(mutex_);
  std::string trouble_ GUARDED_BY(mutex_);
  std::optional<Nanos> least_slack_ GUARDED_BY(mutex_);
  std::string progress_ GUARDED_BY(mutex_);
  std::optional<WallTime> progress_at_ GUARDED_BY(mutex_);
};

}  // namespace stint::holder
