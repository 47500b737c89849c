#include "tests/support/sim.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"

namespace stint::test {
namespace {

TEST(SimClock, DriftsAndFindsTheTrueTimeAgain) {
  Scheduler scheduler(1);
  SimClock clock(scheduler);
  for (const std::int64_t ppm : {0, 400, -400, 100'000, -100'000}) {
    clock.drift(ppm);
    const MonoTime begun = clock.mono();
    const MonoTime local = begun + std::chrono::seconds(10) + Nanos(7);
    const MonoTime when = clock.true_time(local);
    scheduler.interleave(when - scheduler.now() - Nanos(1));
    EXPECT_LT(clock.mono(), local);
    scheduler.interleave(Nanos(1));
    EXPECT_GE(clock.mono(), local);
  }
}

TEST(SimClock, StepsItsWallTimeAlone) {
  Scheduler scheduler(1);
  SimClock clock(scheduler);
  const MonoTime mono = clock.mono();
  const WallTime wall = clock.wall();
  clock.step_wall(Millis(-5'000));
  EXPECT_EQ(clock.mono(), mono);
  EXPECT_EQ(clock.wall(), wall - Millis(5'000));
}

TEST(SimClock, StandsStillWhileItsMachineIsPaused) {
  Scheduler scheduler(1);
  SimClock clock(scheduler);
  const MonoTime before = clock.mono();
  clock.stand_still(Millis(500));
  scheduler.interleave(Millis(400));
  EXPECT_EQ(clock.mono(), before);
  scheduler.interleave(Millis(200));
  EXPECT_EQ(clock.mono(), before + Millis(100));
}

TEST(SimClock, StandsStillUntilTheLaterEndOfTwoPauses) {
  Scheduler scheduler(1);
  SimClock clock(scheduler);
  const MonoTime before = clock.mono();
  clock.stand_still(Millis(500));
  scheduler.interleave(Millis(100));
  clock.stand_still(Millis(300));
  scheduler.interleave(Millis(100));
  clock.stand_still(Millis(400));
  scheduler.interleave(Millis(500));
  EXPECT_EQ(clock.mono(), before + Millis(100));
}

class Ticker final : public Actor {
 public:
  explicit Ticker(std::vector<std::string>& log, std::string name)
      : log_(log), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::optional<MonoTime> step(MonoTime now) override {
    log_.push_back(name_);
    return now + Millis(10);
  }

 private:
  std::vector<std::string>& log_;
  const std::string name_;
};

TEST(Scheduler, DoesNotRunWhatIsFrozen) {
  Scheduler scheduler(1);
  SimClock clock(scheduler);
  std::vector<std::string> log;
  Ticker a(log, "a");
  Ticker b(log, "b");
  scheduler.add(a, clock);
  scheduler.add(b, clock);
  scheduler.freeze(b, Millis(45));
  scheduler.run({.steps = 5});
  EXPECT_EQ(log, (std::vector<std::string>{"a", "a", "a", "a", "a"}));
  scheduler.run({.steps = 2});
  EXPECT_EQ(std::count(log.begin(), log.end(), "b"), 1);
}

// Whoever was killed has no effect any more, and is started anew when its time has come.
TEST(Scheduler, UnwindsWhatIsKilledAndStartsItAgain) {
  Scheduler scheduler(1);
  SimHost& host = scheduler.make_machine("h", scheduler.make_clock());
  int begun = 0;
  int ended = 0;
  SimProcess& process = scheduler.start(host, "p", [&] {
    ++begun;
    scheduler.interleave(std::chrono::hours(1));
    if (scheduler.alive()) ++ended;
  });
  scheduler.run({.steps = 1});
  scheduler.kill(process, Millis(10));
  scheduler.run({.steps = 100, .length = Millis(100)});
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(ended, 0);
  scheduler.run({.steps = 100, .length = std::chrono::minutes(61)});
  EXPECT_EQ(ended, 1);
}

// A fiber that waits in the middle of a call does not keep another from going on in the middle of
// its own.
TEST(Scheduler, GoesOnWithAnyOfThoseThatWait) {
  Scheduler scheduler(1);
  SimHost& host = scheduler.make_machine("h", scheduler.make_clock());
  std::string log;
  for (const auto& [name, pause] : {std::pair{'a', 10}, std::pair{'b', 4}}) {
    scheduler.start_once(
        host, {name},
        [&log, &scheduler, name = name, pause = pause] {
          for (int i = 0; i < 3; ++i) {
            scheduler.interleave(Millis(pause));
            log += name;
          }
        },
        [] {});
  }
  scheduler.run({.steps = 100});
  EXPECT_EQ(log, "bbabaa");
}

}  // namespace
}  // namespace stint::test
