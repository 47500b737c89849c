// A simulation: one thread, one seed, clocks that lie. Seed + commit = replay, bit by bit.
//
// The Scheduler knows the true time and wakes one actor after another. Each actor lives by a
// SimClock of its own, which may drift and whose wall time may be stepped. A step is atomic unless
// the actor's store calls Scheduler::interleave() (FaultStore does): then others run in the middle
// of it, as they would between the read and the commit of a real client.
//
//   Scheduler world(seed);
//   SimClock clock(world);
//   world.add(actor, clock);
//   world.run({.steps = 200});
//
// Not thread-safe: there is only one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/time.h"

namespace stint::test {

class SimClock;

// Something that acts when it is woken. `now` and the answer are on the clock that it was added
// with.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual std::string name() const = 0;
  // Does what is due, and says when to be woken next; empty or max(): only by Scheduler::wake().
  virtual std::optional<MonoTime> step(MonoTime now) = 0;
};

class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed);

  Random& random() { return random_; }
  MonoTime now() const { return now_; }  // the true time, which no actor can see

  // Both must outlive the scheduler. Woken at once.
  void add(Actor& actor, const SimClock& clock);
  void wake(const Actor& actor);
  // It does not run for this long, wherever it stands; SIGSTOP of a process.
  void freeze(const Actor& actor, Nanos length);

  struct Limits {
    std::size_t steps = 1000;
    Nanos length = std::chrono::hours(1000);
    bool stop_at_problem = true;
  };
  // How many steps were made.
  std::size_t run(const Limits& limits);

  // Called from inside a step: time passes, and others run, before the caller goes on.
  void interleave(Nanos length);

  // Runs after every step, also the nested ones.
  void after_each_step(std::function<void()> check) { check_ = std::move(check); }

  // What happened, as text: its hash is the run's fingerprint.
  void note(std::string_view what);
  std::uint64_t fingerprint() const { return fingerprint_; }
  void keep_trace(bool keep) { keep_trace_ = keep; }
  const std::vector<std::string>& trace() const { return trace_; }

  // A broken promise; the run stops.
  void problem(std::string what);
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Slot {
    Actor* actor = nullptr;
    const SimClock* clock = nullptr;
    std::optional<MonoTime> wake;  // true time
    MonoTime frozen_until{};
    bool inside = false;  // a step of it is on the stack
  };

  Slot* next_due();
  Slot& slot_of(const Actor& actor);
  static MonoTime due(const Slot& slot);
  void step(Slot& slot);

  SeededRandom random_;
  MonoTime now_;
  std::vector<Slot> slots_;
  std::function<void()> check_;
  int depth_ = 0;
  std::uint64_t fingerprint_;
  bool keep_trace_ = false;
  std::vector<std::string> trace_;
  std::vector<std::string> problems_;
};

class SimClock final : public Clock {
 public:
  explicit SimClock(const Scheduler& scheduler);

  MonoTime mono() const override { return at(scheduler_.now()); }
  WallTime wall() const override;

  // From now on it gains (or loses) this many microseconds in a second.
  void drift(std::int64_t ppm);
  void step_wall(Millis by) { wall_offset_ += by; }

  // The first true moment at which this clock shows `local`.
  MonoTime true_time(MonoTime local) const;

 private:
  MonoTime at(MonoTime true_time) const;

  const Scheduler& scheduler_;
  MonoTime base_true_;
  MonoTime base_local_;
  std::int64_t ppm_ = 0;
  Millis wall_offset_{0};
};

}  // namespace stint::test
