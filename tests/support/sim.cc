#include "tests/support/sim.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace stint::test {
namespace {

// Not zero: arithmetic that goes below the start shows as negative times, not as wrapped ones.
constexpr Nanos kSimStart = std::chrono::hours(1);
constexpr WallTime kSimWallStart = WallTime(Millis(1'790'000'000'000));
constexpr std::int64_t kSimMillion = 1'000'000;
constexpr std::uint64_t kFnvOffset = 14'695'981'039'346'656'037U;
constexpr std::uint64_t kFnvPrime = 1'099'511'628'211U;
constexpr std::size_t kStackBytes = 1U << 19U;  // only what is touched costs anything
constexpr std::size_t kGuardBytes = 4096;
// An unwinding process that makes so many steps hangs in a loop that takes no notice of errors.
constexpr std::size_t kMostEndSteps = 200'000;

Scheduler* present_scheduler = nullptr;

// Stacks are used again: mapping one costs more than a short run of a fiber.
std::vector<void*>& idle_stacks() {
  static std::vector<void*> stacks;
  return stacks;
}

void* get_stack() {
  std::vector<void*>& idle = idle_stacks();
  if (!idle.empty()) {
    void* stack = idle.back();
    idle.pop_back();
    return stack;
  }
  void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(stack != MAP_FAILED, "no memory for a stack");
  CHECK(::mprotect(stack, kGuardBytes, PROT_NONE) == 0, "a stack's guard page");
  return stack;
}

}  // namespace

struct SimFiber {
  std::uint64_t id = 0;
  SimProcess* process = nullptr;
  std::function<void()> body;
  std::optional<MonoTime> wake;  // true time; empty: waits to be woken
  bool done = false;
  std::uint64_t awaits = 0;  // the fiber whose end it waits for
  void* stack = nullptr;
  ucontext_t context{};
  ucontext_t back{};

  // makecontext passes ints only.
  static void enter(unsigned high, unsigned low) {
    const auto address = (static_cast<std::uintptr_t>(high) << 32U) | low;
    auto* fiber = reinterpret_cast<SimFiber*>(address);
    fiber->body();
    fiber->done = true;
    ::swapcontext(&fiber->context, &fiber->back);
  }
};

Scheduler::Scheduler(std::uint64_t seed)
    : random_(seed), now_(kSimStart), fingerprint_(kFnvOffset) {
  CHECK(present_scheduler == nullptr, "one simulation at a time");
  present_scheduler = this;
}

Scheduler::~Scheduler() {
  end();
  present_scheduler = nullptr;
}

Scheduler& Scheduler::present() {
  CHECK(present_scheduler != nullptr, "outside of a simulation");
  return *present_scheduler;
}

bool Scheduler::exists() { return present_scheduler != nullptr; }

SimClock& Scheduler::make_clock() { return clocks_.emplace_back(*this); }

SimHost& Scheduler::make_machine(std::string name, SimClock& clock) {
  return machines_.emplace_back(SimHost{std::move(name), &clock});
}

SimFiber& Scheduler::make_fiber(SimProcess& process, std::function<void()> body) {
  auto fiber = std::make_unique<SimFiber>();
  fiber->id = ++last_fiber_;
  fiber->process = &process;
  fiber->body = std::move(body);
  fiber->wake = now_;
  fiber->stack = get_stack();
  ::getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack;
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(fiber.get());
  ::makecontext(&fiber->context, reinterpret_cast<void (*)()>(&SimFiber::enter), 2,
                static_cast<unsigned>(address >> 32U), static_cast<unsigned>(address));
  fibers_.push_back(std::move(fiber));
  return *fibers_.back();
}

void Scheduler::live(SimProcess& process, const std::function<void()>& life) {
  while (!ending_) {
    ++process.lives;
    life();
    if (ending_) return;
    const bool killed = process.dead;
    process.dead = false;
    process.signals = 0;
    interleave(killed ? process.away : Nanos(1));
  }
}

SimProcess& Scheduler::start(SimHost& machine, std::string name, std::function<void()> life) {
  SimProcess& process = processes_.emplace_back(SimProcess{std::move(name), &machine});
  make_fiber(process, [this, &process, life = std::move(life)] { live(process, life); });
  return process;
}

SimProcess& Scheduler::start_once(SimHost& machine, std::string name, std::function<void()> body,
                                  std::function<void()> ended) {
  SimProcess& process = processes_.emplace_back(SimProcess{std::move(name), &machine});
  make_fiber(process, [body = std::move(body), ended = std::move(ended)] {
    body();
    ended();
  });
  return process;
}

std::uint64_t Scheduler::start_thread(std::function<void()> body) {
  return make_fiber(*process(), std::move(body)).id;
}

void Scheduler::join(std::uint64_t thread) {
  const auto runs = [&] {
    return std::ranges::any_of(fibers_,
                               [&](const auto& one) { return one->id == thread && !one->done; });
  };
  while (runs()) {
    current_->awaits = thread;
    current_->wake.reset();
    yield();
  }
}

void Scheduler::act(SimProcess& process, Actor& actor) {
  while (!ending_) {
    const auto next = actor.step(process.clock().mono());
    if (ending_) return;
    // An actor is no process whose memory could be lost: what it asked for meanwhile was in vain.
    if (std::exchange(process.dead, false)) {
      interleave(process.away);
      continue;
    }
    std::optional<MonoTime> until;
    // An actor that asks for a moment that has passed would stop the time for all others.
    if (next && *next != MonoTime::max()) {
      until = std::max(process.clock().true_time(*next), now_ + Nanos(1));
    }
    park(until);
  }
}

void Scheduler::add(Actor& actor, SimClock& clock) {
  SimProcess& process =
      processes_.emplace_back(SimProcess{actor.name(), &make_machine(actor.name(), clock)});
  process.actor = &actor;
  make_fiber(process, [this, &process, &actor] { act(process, actor); });
}

SimProcess* Scheduler::process() const { return current_ == nullptr ? nullptr : current_->process; }

SimProcess* Scheduler::find(const std::string& name) const {
  SimProcess* found = nullptr;
  for (const auto& fiber : fibers_) {
    if (!fiber->done && fiber->process->name == name) found = fiber->process;
  }
  return found;
}

std::vector<SimProcess*> Scheduler::living() const {
  std::vector<SimProcess*> out;
  for (const auto& fiber : fibers_) {
    if (!fiber->done && std::ranges::find(out, fiber->process) == out.end()) {
      out.push_back(fiber->process);
    }
  }
  return out;
}

bool Scheduler::alive() const {
  return !ending_ && (current_ == nullptr || !current_->process->dead);
}

MonoTime Scheduler::due(const SimFiber& fiber) {
  if (fiber.process->dead) return *fiber.wake;
  return std::max({*fiber.wake, fiber.process->frozen_until, fiber.process->machine->frozen_until});
}

// The earliest; among those due at the same moment, any.
SimFiber* Scheduler::next_due() {
  SimFiber* best = nullptr;
  MonoTime best_due{};
  std::uint64_t ties = 0;
  for (const auto& fiber : fibers_) {
    if (!fiber->wake || fiber->done) continue;
    const MonoTime at = std::max(due(*fiber), now_);
    const bool earlier = best == nullptr || at < best_due;
    const bool same = !earlier && at == best_due;
    if (earlier) ties = 1;
    if (same) ++ties;
    if (!earlier && !(same && random_.below(ties) == 0)) continue;
    best = fiber.get();
    best_due = at;
  }
  return best;
}

void Scheduler::resume(SimFiber& fiber) {
  now_ = std::max(now_, due(fiber));
  fiber.wake.reset();
  current_ = &fiber;
  ::swapcontext(&fiber.back, &fiber.context);
  current_ = nullptr;
  if (fiber.done) {
    idle_stacks().push_back(fiber.stack);
    for (const auto& other : fibers_) {
      if (std::exchange(other->awaits, other->awaits == fiber.id ? 0 : other->awaits) == fiber.id) {
        other->wake = now_;
      }
    }
    std::erase_if(fibers_, [&](const auto& one) { return one.get() == &fiber; });
  }
  if (check_ && !ending_) check_();
}

void Scheduler::yield() { ::swapcontext(&current_->context, &current_->back); }

std::size_t Scheduler::run(const Limits& limits) {
  const MonoTime end = now_ + limits.length;
  std::size_t steps = 0;
  while (steps < limits.steps) {
    SimFiber* fiber = next_due();
    if (fiber == nullptr || due(*fiber) > end) break;
    resume(*fiber);
    ++steps;
    if (limits.stop_at_problem && !problems_.empty()) break;
  }
  return steps;
}

void Scheduler::end() {
  ending_ = true;
  for (SimProcess& process : processes_) process.dead = true;
  for (std::size_t i = 0; !fibers_.empty(); ++i) {
    for (const auto& fiber : fibers_) {
      fiber->wake = std::min(fiber->wake.value_or(now_), now_);
    }
    CHECK(i < kMostEndSteps, "a process of the simulation does not end");
    resume(*next_due());
  }
}

void Scheduler::sleep_until(MonoTime true_time) {
  if (current_ == nullptr) {
    now_ = std::max(now_, true_time);
    return;
  }
  if (!alive()) return;
  current_->wake = true_time;
  yield();
}

void Scheduler::interleave(Nanos length) { sleep_until(now_ + length); }

void Scheduler::park(std::optional<MonoTime> until) {
  current_->wake = alive() ? until : now_;
  yield();
}

void Scheduler::give_way() {
  current_->wake = now_;
  yield();
}

void Scheduler::wake(SimFiber* fiber) {
  if (!fiber->done) fiber->wake = now_;
}

void Scheduler::wake(const Actor& actor) {
  for (const auto& fiber : fibers_) {
    if (fiber->process->actor == &actor && fiber.get() != current_) fiber->wake = now_;
  }
}

void Scheduler::freeze(const Actor& actor, Nanos length) {
  for (SimProcess& process : processes_) {
    if (process.actor == &actor) freeze(process, length);
  }
}

void Scheduler::freeze(SimProcess& process, Nanos length) {
  process.frozen_until = std::max(process.frozen_until, now_ + length);
}

void Scheduler::freeze(SimHost& machine, Nanos length) {
  machine.frozen_until = std::max(machine.frozen_until, now_ + length);
}

void Scheduler::kill(SimProcess& process, Nanos away) {
  process.dead = true;
  process.away = away;
  for (const auto& fiber : fibers_) {
    if (fiber->process == &process) fiber->wake = now_;
  }
}

void Scheduler::note(std::string_view what) {
  if (ending_) return;
  std::string line = cat(now_.time_since_epoch().count(), ' ', what, '\n');
  for (const char c : line) {
    fingerprint_ = (fingerprint_ ^ static_cast<unsigned char>(c)) * kFnvPrime;
  }
  line.pop_back();
  if (keep_trace_) trace_.push_back(std::move(line));
}

void Scheduler::problem(std::string what) {
  if (ending_) return;
  note(cat("PROBLEM ", what));
  problems_.push_back(std::move(what));
}

SimClock::SimClock(const Scheduler& scheduler)
    : scheduler_(scheduler), base_true_(scheduler.now()), base_local_(scheduler.now()) {}

MonoTime SimClock::at(MonoTime true_time) const {
  const std::int64_t elapsed = std::max<std::int64_t>((true_time - base_true_).count(), 0);
  return base_local_ + Nanos(elapsed + elapsed / kSimMillion * ppm_);
}

MonoTime SimClock::mono() const { return at(scheduler_.now()); }

WallTime SimClock::wall() const {
  const Nanos since = mono() - MonoTime(kSimStart);
  return kSimWallStart + std::chrono::duration_cast<Millis>(since) + wall_offset_;
}

void SimClock::drift(std::int64_t ppm) {
  base_local_ = mono();
  base_true_ = std::max(base_true_, scheduler_.now());
  ppm_ = ppm;
}

void SimClock::stand_still(Nanos length) {
  base_local_ = mono();
  base_true_ = std::max(base_true_, scheduler_.now() + length);
}

MonoTime SimClock::true_time(MonoTime local) const {
  const std::int64_t wanted = (local - base_local_).count();
  if (wanted <= 0) return std::min(base_true_, scheduler_.now());
  MonoTime guess = base_true_ + Nanos(wanted - wanted / (kSimMillion + ppm_) * ppm_);
  // The division rounds: walk the last few nanoseconds.
  while (at(guess) < local) guess += std::max(local - at(guess), Nanos(1));
  while (guess > base_true_ && at(guess - Nanos(1)) >= local) guess -= Nanos(1);
  return guess;
}

}  // namespace stint::test
