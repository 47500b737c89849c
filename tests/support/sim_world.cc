#include "tests/support/sim_world.h"

#include "base/check.h"
#include "base/text.h"
#include "tests/support/sim_actors.h"

namespace stint::test {
namespace {

// Two clocks may differ by twice this; holders allow for a thousandth.
constexpr std::uint64_t kMostDriftPpm = 400;
constexpr std::uint64_t kMostWallStepMs = 7'200'000;
constexpr std::size_t kKeptEvents = 50;

std::vector<ResourceName> name_resources(int count) {
  std::vector<ResourceName> out;
  for (int i = 0; i < count; ++i) out.push_back(*ResourceName::parse(cat("r", i)));
  return out;
}

std::vector<std::string> texts(const std::vector<ResourceName>& names) {
  std::vector<std::string> out;
  for (const ResourceName& name : names) out.push_back(name.text());
  return out;
}

}  // namespace

std::string SimReport::text() const {
  std::string out =
      cat("seed ", seed, ": ", steps, " steps, ", grants, " grants, ", renewals, " renewals\n");
  for (const std::string& problem : problems) out += cat("  ", problem, '\n');
  for (const std::string& line : trace) out += cat("    ", line, '\n');
  return out;
}

SimClock& SimWorld::make_clock() {
  Random& random = scheduler_.random();
  SimClock& clock = *clocks_.emplace_back(std::make_unique<SimClock>(scheduler_));
  clock.drift(static_cast<std::int64_t>(random.below(2 * kMostDriftPpm + 1)) -
              static_cast<std::int64_t>(kMostDriftPpm));
  clock.step_wall(Millis(random.below(kMostWallStepMs)) - Millis(kMostWallStepMs / 2));
  return clock;
}

SimWorld::SimWorld(const SimOptions& options)
    : options_(options),
      scheduler_(options.seed),
      store_clock_(make_clock()),
      store_(scheduler_, store_clock_, options.faults, options.sabotage),
      ledger_(store_, store_clock_, kKeptEvents),
      resources_(name_resources(options.resources)),
      invariants_(scheduler_, store_.truth(), store_clock_, texts(resources_)) {
  scheduler_.keep_trace(options.keep_trace);
  auto life = service::begin_life(store_, scheduler_.random(), store_clock_.wall(), nullptr, {});
  CHECK(life, "a new store begins its life");
  service_.emplace(store_, ledger_, *life, store_clock_, scheduler_.random(), nullptr);
  scheduler_.add(store_, store_clock_);
  scheduler_.after_each_step([this] { invariants_.check_beliefs(); });
  store_.after_each_commit([this] { invariants_.observe(); });
  store_.set_faulty(true);
}

// The ledger still writes when it goes: nobody is left to look at that.
SimWorld::~SimWorld() {
  store_.set_faulty(false);
  store_.after_each_commit({});
}

void SimWorld::add(std::unique_ptr<Actor> actor, const SimClock& clock) {
  scheduler_.add(*actor, clock);
  actors_.push_back(std::move(actor));
}

SimReport SimWorld::run() {
  SimReport report;
  report.seed = options_.seed;
  const MonoTime begun = scheduler_.now();
  report.steps = scheduler_.run({.steps = options_.steps});
  report.length = scheduler_.now() - begun;
  report.fingerprint = scheduler_.fingerprint();
  report.grants = invariants_.grants();
  report.renewals = invariants_.renewals();
  report.faults = store_.faults();
  report.problems = scheduler_.problems();
  report.trace = scheduler_.trace();
  return report;
}

SimReport run_sim(const SimOptions& options) {
  SimWorld world(options);
  for (int i = 0; i < options.workers; ++i) {
    SimClock& clock = world.make_clock();
    world.add(std::make_unique<SimWorker>(world, clock, cat("worker", i)), clock);
  }
  if (options.with_operator) {
    SimClock& clock = world.make_clock();
    world.add(std::make_unique<SimOperator>(world, clock), clock);
  }
  return world.run();
}

}  // namespace stint::test
