// One grant, kept: the engine of a stint::Holder.
//
// The rule it owns: a grant is lost for good when the store says so or when the deadline that was
// last known has passed, whichever is noticed first; the stop is requested before anything else,
// and a renewal that is acknowledged after that changes nothing. G6 G7
//
// A KeeperThread renews. A second thread waits in one place for its news, for wake-ups from the
// store and for the deadline, so that a renewal that hangs delays no stop.
//
// In a child of fork() it is of no use: its verbs say so, and do nothing. No lock is taken there,
// as a thread that is not in the child may have held it.
//
// Thread safety: any thread, but end(), release() and the destruction, which are one thread's.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "holder/keeper_thread.h"
#include "holder/taking.h"
#include "lib/client_state.h"
#include "stint/stint.h"

namespace stint::lib {

class Hold {
 public:
  // REQUIRES: `taken` has one lease. Follow it by start().
  Hold(std::shared_ptr<ClientState> client, AcquireOptions options,
       const core::HoldSettings& settings, const holder::Taken& taken, os::EventFd bell);
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  // Starts the threads of `hold`; the watching one shares it. May throw std::system_error. Errors:
  // out of descriptors or threads.
  static Status start(const std::shared_ptr<Hold>& hold);
  // Ends the threads; idempotent. On the watching thread itself (inside a stop callback) it does
  // not wait: that thread ends by itself.
  void end();

  // Looks at the clock and at the keeper, and requests the stop if it is time. Still held?
  bool look();
  Outcome<Lease, Lost> check();
  Outcome<Lease, Lost> progress(const std::string& marker);
  Outcome<Lease, Lost> release();

  std::stop_token stop_token() const { return stop_.get_token(); }
  MonoTime deadline() const;
  std::optional<Lost> lost() const;

  const std::shared_ptr<ClientState>& client() const { return client_; }
  const os::Birthplace& birthplace() const { return client_->born; }
  const AcquireOptions& options() const { return options_; }
  const api::Granted& granted() const { return granted_; }
  const api::Grip& grip() const { return kept_.grip; }

 private:
  void watch_loop();
  void note_step();
  Outcome<Lease, Lost> told(const Result<api::HoldAnswer>& answer);
  void lose(const Lost& lost);
  Lost overdue(const holder::KeeperState& state, MonoTime deadline) const;

  // Constant after construction.
  const std::shared_ptr<ClientState> client_;  // shared: whichever goes last closes the store
  const AcquireOptions options_;
  const core::HoldSettings settings_;
  const holder::Kept kept_;
  const api::Granted granted_;

  holder::Keeper keeper_;
  std::stop_source stop_;
  os::EventFd bell_;  // rings for the end
  std::atomic<bool> ending_ = false;

  mutable Mutex mutex_;
  MonoTime deadline_ GUARDED_BY(mutex_);
  std::optional<Lost> lost_ GUARDED_BY(mutex_);
  std::optional<Lease> released_ GUARDED_BY(mutex_);

  // The watching thread's own, once it runs.
  std::unique_ptr<Watch> watch_;  // empty: a revocation is noticed at the next renewal
  std::unique_ptr<holder::KeeperThread> keeping_;
  std::thread watching_;
};

}  // namespace stint::lib
