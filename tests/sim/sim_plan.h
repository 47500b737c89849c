// The faults of one run of the simulation, as data: made from a seed, printed, read back, replayed.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "tests/support/fault_store.h"

namespace stint::test {

// What really struck, by kind.
struct SimTally {
  std::map<std::string, std::uint64_t> faults;
  void fault(const std::string& kind) { ++faults[kind]; }
};

// Which cast plays. In those where the store may lose what it acknowledged, queue and scheduler do
// not: their records are promised only as long as the store keeps them.
enum class SimScene { Everything, Leases, TailLoss, Restore };

// What is edited under a lease.
enum class SimKind { File, Tree, Row, Text, Branch };

struct SimFault {
  // By time since the start; or, if `commit` is not zero, right after that many commits were
  // applied, before anybody has its answer.
  Nanos at{0};
  std::uint64_t commit = 0;
  std::string what;
  std::string whom;  // "who": whoever made that commit
  Nanos length{0};
  std::int64_t amount = 0;
};

struct SimPlan {
  std::uint64_t seed = 1;
  SimScene scene = SimScene::Everything;
  // Of the artifacts f0 and f1. A text is behind proxies, whose fences are in the store: not where
  // that may lose what it acknowledged.
  std::array<SimKind, 2> kinds = {SimKind::File, SimKind::Tree};
  bool has(SimKind kind) const { return kinds[0] == kind || kinds[1] == kind; }
  Nanos length{0};
  FaultPlan network;
  std::vector<SimFault> faults;

  // One fault a line.
  std::string text() const;
};

SimPlan make_plan(std::uint64_t seed);
// The seed's world with these faults instead of its own: the lines of SimPlan::text().
Result<SimPlan> read_plan(std::uint64_t seed, const std::string& text);

}  // namespace stint::test
