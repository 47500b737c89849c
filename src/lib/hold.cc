#include "lib/hold.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "holder/clock_step.h"
#include "lib/faces.h"
#include "os/pause.h"
#include "os/thread.h"

namespace stint::lib {
namespace {

// A watch sleeps through a change only if the writer died between its commit and the wake-up.
constexpr Millis kLongestSleep{30'000};

// Threads that are started meanwhile take no signals: those are the program's.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Hold::Hold(std::shared_ptr<ClientState> client, AcquireOptions options,
           const core::HoldSettings& settings, const holder::Taken& taken, os::EventFd bell)
    : client_(std::move(client)),
      options_(std::move(options)),
      settings_(settings),
      kept_(taken.kept.front()),
      granted_(taken.grants.front()),
      keeper_(client_->leases(), client_->clock, client_->random, settings, {kept_}),
      bell_(std::move(bell)),
      deadline_(keeper_.state().deadline) {}

Status Hold::start(const std::shared_ptr<Hold>& hold) {
  const SignalsBlocked blocked;
  auto keeping =
      holder::KeeperThread::make(hold->keeper_, {}, [raw = hold.get()] { raw->note_step(); });
  if (!keeping) return keeping.error();
  hold->keeping_ = std::move(*keeping);
  if (auto started = hold->keeping_->start(); !started) return started;
  if (auto watch = hold->client_->leases().watch(hold->kept_.grip.resource); watch) {
    hold->watch_ = std::move(*watch);
    hold->keeping_->look_soon();  // what changed between the grant and the watch
  }
  auto watching =
      os::start_thread("stint-holder", "watch the lease", [hold] { hold->watch_loop(); });
  if (!watching) return watching.error();
  hold->watching_ = std::move(*watching);
  return {};
}

void Hold::end() {
  ending_ = true;
  bell_.signal();
  if (!watching_.joinable()) return;
  if (watching_.get_id() == std::this_thread::get_id()) {
    watching_.detach();  // it shares this object and goes last
  } else {
    watching_.join();
  }
}

void Hold::watch_loop() {
  std::vector<int> fds = {bell_.fd(), keeping_->fd()};
  if (watch_) fds.push_back(watch_->fd());
  MonoTime look_at = client_->clock.mono() + kLongestSleep;
  while (!ending_) {
    const auto ready = os::wait_readable(fds, std::min(deadline(), look_at));
    if (ending_) break;
    keeping_->acknowledge();
    // The stop first: nothing is sent before it.
    if (!look()) break;
    const bool woken = watch_ && ready.back();
    if (!woken && client_->clock.mono() < look_at) continue;
    if (watch_) watch_->acknowledge();
    keeping_->look_soon();
    look_at = client_->clock.mono() + kLongestSleep;
  }
  // Lost or released: never renewed again.
  keeping_->stop();
}

void Hold::note_step() {
  const auto by = keeper_.take_step();
  if (!by) return;
  [[maybe_unused]] const auto recorded = client_->opened->events().record(
      holder::clock_step_event({.at = client_->clock.wall(),
                                .resource = kept_.grip.resource,
                                .token = kept_.grip.token,
                                .owner = kept_.grip.owner.value_or(Owner()),
                                .by = *by}));
}

// Both threads wake up together after a suspend: a renewal that is quicker than this look does not
// move a deadline that has passed (core/holder_policy.h).
bool Hold::look() {
  if (!birthplace().here()) return false;
  const holder::KeeperState state = keeper_.state();
  std::optional<Lost> lost;
  {
    const MutexLock lock(mutex_);
    if (lost_ || released_) return false;
    if (state.lost) {
      lost = face(*state.lost, kept_.grip.token);
    } else if (state.standing == holder::KeeperState::Standing::Overdue) {
      deadline_ = state.deadline;
      lost = overdue(state, deadline_);
    } else {
      deadline_ = state.deadline;
      return true;
    }
  }
  lose(*lost);
  return false;
}

Lost Hold::overdue(const holder::KeeperState& state, MonoTime deadline) const {
  Lost lost;
  lost.cause = Cause::Deadline;
  lost.token = kept_.grip.token.number();
  lost.now.resource = kept_.grip.resource.text();
  lost.trouble = state.trouble;
  if (settings_.max_hold.count() > 0) {
    const core::HolderPolicy longest(settings_, kept_.sent_at, settings_.max_hold, client_->random);
    if (deadline >= longest.deadline()) lost.cause = Cause::MaxHold;
  }
  return lost;
}

void Hold::lose(const Lost& lost) {
  {
    const MutexLock lock(mutex_);
    if (lost_ || released_) return;
    lost_ = lost;
  }
  // Callbacks run here, without any lock.
  stop_.request_stop();
  bell_.signal();
}

Outcome<Lease, Lost> Hold::check() {
  if (auto ok = client_->usable(); !ok) return ok.error();
  if (const auto lost = look() ? std::nullopt : this->lost()) return *lost;
  return told(client_->leases().check(kept_.grip));
}

Outcome<Lease, Lost> Hold::progress(const std::string& marker) {
  if (auto ok = client_->usable(); !ok) return ok.error();
  if (const auto lost = look() ? std::nullopt : this->lost()) return *lost;
  return told(client_->leases().progress(kept_.grip, marker));
}

// The stop first, the answer after. The deadline may have passed while the store answered.
Outcome<Lease, Lost> Hold::told(const Result<api::HoldAnswer>& answer) {
  auto out = face(answer, kept_.grip.token);
  if (const auto* lost = out.get_if<Lost>()) lose(*lost);
  if (const auto lost = look() ? std::nullopt : this->lost()) return *lost;
  return out;
}

Outcome<Lease, Lost> Hold::release() {
  if (auto ok = client_->usable(); !ok) return ok.error();
  end();
  {
    const MutexLock lock(mutex_);
    if (released_) return *released_;
    // After the deadline the store may still count it as held; otherwise there is nothing to
    // release.
    const bool gone = lost_ && lost_->cause != Cause::Deadline && lost_->cause != Cause::MaxHold;
    if (gone) return *lost_;
  }
  auto out = face(client_->leases().release(kept_.grip, false), kept_.grip.token);
  const MutexLock lock(mutex_);
  if (out) {
    released_ = *out;
  } else if (const auto* lost = out.get_if<Lost>(); lost != nullptr && !lost_) {
    lost_ = *lost;
  }
  return out;
}

MonoTime Hold::deadline() const {
  if (!birthplace().here()) return MonoTime();
  const MutexLock lock(mutex_);
  return deadline_;
}

std::optional<Lost> Hold::lost() const {
  if (auto ok = client_->usable(); !ok) {
    Lost lost;
    lost.cause = Cause::NotHolder;
    lost.token = kept_.grip.token.number();
    lost.now.resource = kept_.grip.resource.text();
    lost.trouble = ok.error().message;
    return lost;
  }
  const MutexLock lock(mutex_);
  return lost_;
}

}  // namespace stint::lib
