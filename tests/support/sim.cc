#include "tests/support/sim.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace stint::test {
namespace {

// Not zero: arithmetic that goes below the start shows as negative times, not as wrapped ones.
constexpr Nanos kStart = std::chrono::hours(1);
constexpr WallTime kWallStart = WallTime(Millis(1'790'000'000'000));
constexpr std::int64_t kMillion = 1'000'000;
// Deeper than this, time passes but nobody runs: three clients inside one commit are enough.
constexpr int kMostDepth = 3;
constexpr std::uint64_t kFnvOffset = 14'695'981'039'346'656'037U;
constexpr std::uint64_t kFnvPrime = 1'099'511'628'211U;

}  // namespace

Scheduler::Scheduler(std::uint64_t seed) : random_(seed), now_(kStart), fingerprint_(kFnvOffset) {}

void Scheduler::add(Actor& actor, const SimClock& clock) {
  slots_.push_back({.actor = &actor, .clock = &clock, .wake = now_});
}

Scheduler::Slot& Scheduler::slot_of(const Actor& actor) {
  const auto found = std::ranges::find(slots_, &actor,
                                       [](const Slot& slot) -> const Actor* { return slot.actor; });
  CHECK(found != slots_.end(), "this actor was not added");
  return *found;
}

void Scheduler::wake(const Actor& actor) { slot_of(actor).wake = now_; }

void Scheduler::freeze(const Actor& actor, Nanos length) {
  Slot& slot = slot_of(actor);
  slot.frozen_until = std::max(slot.frozen_until, now_ + length);
}

MonoTime Scheduler::due(const Slot& slot) { return std::max(*slot.wake, slot.frozen_until); }

// The earliest; among those due at the same moment, any.
Scheduler::Slot* Scheduler::next_due() {
  Slot* best = nullptr;
  std::uint64_t ties = 0;
  for (Slot& slot : slots_) {
    if (!slot.wake || slot.inside) continue;
    const bool earlier = best == nullptr || due(slot) < due(*best);
    const bool same = best != nullptr && due(slot) == due(*best);
    if (earlier) ties = 1;
    if (same) ++ties;
    if (earlier || (same && random_.below(ties) == 0)) best = &slot;
  }
  return best;
}

void Scheduler::step(Slot& slot) {
  now_ = std::max(now_, due(slot));
  slot.wake.reset();
  slot.inside = true;
  ++depth_;
  const auto next = slot.actor->step(slot.clock->mono());
  --depth_;
  slot.inside = false;
  if (next && *next != MonoTime::max()) {
    // An actor that asks for a moment that has passed would stop the time for all others.
    const MonoTime wanted = std::max(slot.clock->true_time(*next), now_ + Nanos(1));
    slot.wake = slot.wake ? std::min(*slot.wake, wanted) : wanted;
  }
  if (check_) check_();
}

std::size_t Scheduler::run(const Limits& limits) {
  const MonoTime end = now_ + limits.length;
  std::size_t steps = 0;
  while (steps < limits.steps) {
    Slot* slot = next_due();
    if (slot == nullptr || due(*slot) > end) break;
    step(*slot);
    ++steps;
    if (limits.stop_at_problem && !problems_.empty()) break;
  }
  return steps;
}

void Scheduler::interleave(Nanos length) {
  const MonoTime until = now_ + length;
  while (depth_ < kMostDepth) {
    Slot* slot = next_due();
    if (slot == nullptr || due(*slot) > until) break;
    step(*slot);
  }
  now_ = std::max(now_, until);
}

void Scheduler::note(std::string_view what) {
  std::string line = cat(now_.time_since_epoch().count(), ' ', what);
  for (const char c : line) {
    fingerprint_ = (fingerprint_ ^ static_cast<unsigned char>(c)) * kFnvPrime;
  }
  if (keep_trace_) trace_.push_back(std::move(line));
}

void Scheduler::problem(std::string what) {
  note(cat("PROBLEM ", what));
  problems_.push_back(std::move(what));
}

SimClock::SimClock(const Scheduler& scheduler)
    : scheduler_(scheduler), base_true_(scheduler.now()), base_local_(scheduler.now()) {}

MonoTime SimClock::at(MonoTime true_time) const {
  const std::int64_t elapsed = (true_time - base_true_).count();
  return base_local_ + Nanos(elapsed + elapsed / kMillion * ppm_);
}

WallTime SimClock::wall() const {
  const Nanos since = mono() - MonoTime(kStart);
  return kWallStart + std::chrono::duration_cast<Millis>(since) + wall_offset_;
}

void SimClock::drift(std::int64_t ppm) {
  base_local_ = mono();
  base_true_ = scheduler_.now();
  ppm_ = ppm;
}

MonoTime SimClock::true_time(MonoTime local) const {
  const std::int64_t wanted = (local - base_local_).count();
  MonoTime guess = base_true_ + Nanos(wanted - wanted / (kMillion + ppm_) * ppm_);
  // The division rounds: walk the last few nanoseconds.
  while (at(guess) < local) guess += std::max(local - at(guess), Nanos(1));
  while (at(guess - Nanos(1)) >= local) guess -= Nanos(1);
  return guess;
}

}  // namespace stint::test
