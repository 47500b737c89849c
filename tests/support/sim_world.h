// A whole small world for the simulation: workers and an operator on one faulty store.
//
//   const SimReport report = run_sim({.seed = 42});
//   EXPECT_TRUE(report.problems.empty()) << report.text();
//
// Another cast (the production holder, for one): build a SimWorld, and add actors before run().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "service/lease_service.h"
#include "tests/support/fault_store.h"
#include "tests/support/sim_invariants.h"

namespace stint::test {

struct SimOptions {
  std::uint64_t seed = 1;
  std::size_t steps = 120;
  int workers = 3;
  int resources = 2;
  bool with_operator = true;
  FaultPlan faults = {};
  Sabotage sabotage = Sabotage::None;
  bool keep_trace = false;
};

struct SimReport {
  std::uint64_t seed = 0;
  std::uint64_t fingerprint = 0;
  std::size_t steps = 0;
  Nanos length{0};
  int grants = 0;
  int renewals = 0;
  std::map<std::string, int> faults;
  std::vector<std::string> problems;
  std::vector<std::string> trace;
  // With the seed, so that a failure can be run again.
  std::string text() const;
};

class SimWorld {
 public:
  explicit SimWorld(const SimOptions& options);
  ~SimWorld();
  SimWorld(const SimWorld&) = delete;
  SimWorld& operator=(const SimWorld&) = delete;

  Scheduler& scheduler() { return scheduler_; }
  FaultStore& store() { return store_; }
  api::Leases& leases() { return *service_; }
  SimInvariants& invariants() { return invariants_; }
  const std::vector<ResourceName>& resources() const { return resources_; }
  // A clock with a drift and a wall time of its own, within what holders allow for.
  SimClock& make_clock();
  // The world keeps the actor.
  void add(std::unique_ptr<Actor> actor, const SimClock& clock);

  SimReport run();

 private:
  const SimOptions options_;
  Scheduler scheduler_;
  std::vector<std::unique_ptr<SimClock>> clocks_;
  SimClock& store_clock_;
  FaultStore store_;
  service::Ledger ledger_;
  std::optional<service::LeaseService> service_;
  std::vector<ResourceName> resources_;
  SimInvariants invariants_;
  std::vector<std::unique_ptr<Actor>> actors_;
};

SimReport run_sim(const SimOptions& options);

}  // namespace stint::test
