// EVIDENCE-OF: G1 G2 G3 G4 G6
#include "tests/support/sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "base/text.h"
#include "tests/support/sim_world.h"

namespace stint::test {
namespace {

constexpr std::uint64_t kSeeds = 2000;

TEST(Sim, KeepsTheLawOnEverySeed) {
  std::map<std::string, int> faults;
  std::uint64_t grants = 0;
  std::uint64_t renewals = 0;
  std::size_t steps = 0;
  Nanos length{0};
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const SimReport report = run_sim({.seed = seed});
    if (!report.problems.empty()) {
      ADD_FAILURE() << run_sim({.seed = seed, .keep_trace = true}).text();
      return;
    }
    for (const auto& [fault, count] : report.faults) faults[fault] += count;
    grants += static_cast<std::uint64_t>(report.grants);
    renewals += static_cast<std::uint64_t>(report.renewals);
    steps += report.steps;
    length += report.length;
  }
  std::cout << kSeeds << " seeds, " << steps << " steps, " << grants << " grants, " << renewals
            << " renewals, " << std::chrono::duration_cast<std::chrono::minutes>(length).count()
            << " simulated minutes; faults:";
  for (const auto& [fault, count] : faults) std::cout << ' ' << fault << '=' << count;
  std::cout << '\n';
  EXPECT_GT(grants, kSeeds);
  EXPECT_GT(renewals, kSeeds);
  for (const char* fault : {"lose_reply", "lose_request", "unavailable", "apply_late", "slow",
                            "late_applied", "late_dead"}) {
    EXPECT_GT(faults[fault], 0) << fault;
  }
}

TEST(Sim, RepeatsARunBitByBit) {
  for (const std::uint64_t seed : {1U, 77U, 1999U}) {
    const SimReport first = run_sim({.seed = seed, .keep_trace = true});
    const SimReport second = run_sim({.seed = seed, .keep_trace = true});
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.fingerprint, second.fingerprint);
    EXPECT_NE(first.fingerprint, run_sim({.seed = seed + 1}).fingerprint);
  }
}

// A store that does not keep its side must be caught: otherwise the invariants prove nothing.
int caught(Sabotage sabotage, std::string_view law) {
  int count = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const SimReport report = run_sim({.seed = seed, .sabotage = sabotage});
    for (const std::string& problem : report.problems) count += problem.starts_with(law) ? 1 : 0;
  }
  return count;
}

TEST(Sim, CatchesAStoreThatIgnoresTimers) { EXPECT_GT(caught(Sabotage::IgnoreTimers, "G3"), 0); }

TEST(Sim, CatchesAStoreThatIgnoresVersions) {
  EXPECT_GT(caught(Sabotage::IgnoreVersions, "G1"), 0);
}

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

}  // namespace
}  // namespace stint::test
