// A simulation: one thread, one seed, clocks that lie. Seed + commit = replay, bit by bit.
//
// Everything that acts runs on a fiber (a stack of its own, one of them at a time). The Scheduler
// knows the true time and goes on with whichever fiber is due first. A fiber gives way only where
// it waits: interleave() (every store and disk of the simulation calls it), park(). So between any
// two requests of one process everything else may happen, and production code that blocks (a take
// that waits, a supervisor, a worker) runs unchanged.
//
//   Scheduler world(seed);
//   SimHost machine(world, "m1");
//   SimProcess& process = world.start(machine, "w1", [&] { ...one life... });
//   world.run({.steps = 200});
//
// A process that is killed stops having effects at once: whatever it still asks of a simulated
// store or disk is answered with an error until its stack is unwound; then it is started anew.
//
// Not thread-safe: there is only one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/time.h"

namespace stint::test {

class Scheduler;
class SimClock;
struct SimFiber;

// Something that acts when it is woken. `now` and the answer are on the clock that it was added
// with.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual std::string name() const = 0;
  // Does what is due, and says when to be woken next; empty or max(): only by Scheduler::wake().
  virtual std::optional<MonoTime> step(MonoTime now) = 0;
};

class SimClock final : public Clock {
 public:
  explicit SimClock(const Scheduler& scheduler);

  MonoTime mono() const override;
  WallTime wall() const override;

  // From now on it gains (or loses) this many microseconds in a second.
  void drift(std::int64_t ppm);
  void step_wall(Millis by) { wall_offset_ += by; }
  // It stands still for this long: a virtual machine that is paused from outside.
  void stand_still(Nanos length);

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

// What is frozen together, and lives by one clock.
struct SimHost {
  std::string name;
  SimClock* clock = nullptr;
  MonoTime frozen_until{};
};

struct SimProcess {
  std::string name;
  SimHost* machine = nullptr;
  const Actor* actor = nullptr;
  MonoTime frozen_until{};
  bool dead = false;
  Nanos away{0};    // until it is started anew
  int signals = 0;  // that it has not taken yet
  int lives = 0;
  const SimClock& clock() const { return *machine->clock; }
};

class Scheduler {
 public:
  explicit Scheduler(std::uint64_t seed);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // The one that lives; what stands in for the operating system asks it.
  static Scheduler& present();
  static bool exists();

  Random& random() { return random_; }
  MonoTime now() const { return now_; }  // the true time, which no actor can see

  SimClock& make_clock();
  SimHost& make_machine(std::string name, SimClock& clock);
  // `life` is run again and again: after it returned, and after it was killed and came back.
  SimProcess& start(SimHost& machine, std::string name, std::function<void()> life);
  // A process that ends when `body` returns; `ended` is told, also when it was killed.
  SimProcess& start_once(SimHost& machine, std::string name, std::function<void()> body,
                         std::function<void()> ended);
  // A thread of the process that asks.
  std::uint64_t start_thread(std::function<void()> body);
  void join(std::uint64_t thread);
  // Must outlive the scheduler's runs. Woken at once.
  void add(Actor& actor, SimClock& clock);

  // ---- for whoever runs on a fiber
  // Time passes, and others run. Dead: returns at once.
  void interleave(Nanos length);
  void sleep_until(MonoTime true_time);
  // Until woken by wake(fiber()), or the time has come.
  void park(std::optional<MonoTime> until);
  // Lets others run, at this very moment.
  void give_way();
  SimFiber* fiber() const { return current_; }
  void wake(SimFiber* fiber);
  SimProcess* process() const;
  // The youngest of that name that still runs; null: none does.
  SimProcess* find(const std::string& name) const;
  std::vector<SimProcess*> living() const;
  // False: whoever asks was killed, and must have no effect any more.
  bool alive() const;

  // ---- faults
  void wake(const Actor& actor);
  // It does not run for this long, wherever it stands: SIGSTOP.
  void freeze(const Actor& actor, Nanos length);
  void freeze(SimProcess& process, Nanos length);
  void freeze(SimHost& machine, Nanos length);
  void kill(SimProcess& process, Nanos away);

  struct Limits {
    std::size_t steps = 1000;
    Nanos length = std::chrono::hours(1000);
    bool stop_at_problem = true;
  };
  // How many steps were made: from one wait of a fiber to its next.
  std::size_t run(const Limits& limits);
  // Everybody dies, and every stack is unwound. Nothing runs afterwards.
  void end();

  // Runs after every step.
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
  friend struct SimFiber;
  SimFiber& make_fiber(SimProcess& process, std::function<void()> body);
  SimFiber* next_due();
  static MonoTime due(const SimFiber& fiber);
  void resume(SimFiber& fiber);
  void yield();
  void live(SimProcess& process, const std::function<void()>& life);
  void act(SimProcess& process, Actor& actor);

  SeededRandom random_;
  MonoTime now_;
  std::deque<SimClock> clocks_;
  std::deque<SimHost> machines_;
  std::deque<SimProcess> processes_;
  std::vector<std::unique_ptr<SimFiber>> fibers_;
  SimFiber* current_ = nullptr;
  std::uint64_t last_fiber_ = 0;
  bool ending_ = false;
  std::function<void()> check_;
  std::uint64_t fingerprint_;
  bool keep_trace_ = false;
  std::vector<std::string> trace_;
  std::vector<std::string> problems_;
};

}  // namespace stint::test
