// Machines of the simulation that run schedulers: each lives by a clock of its own, is killed with
// -9 at random, alone or with all that it runs, and comes back. What really was started is written
// down by the world, not by the machines.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedule/scheduler.h"
#include "service/lease_service.h"
#include "service/slot_service.h"
#include "tests/support/fault_store.h"
#include "tests/support/sim_laws.h"

namespace stint::test {

// What no machine can see.
struct SlotTruth {
  std::map<std::pair<std::string, int>, int> starts;  // by key and attempt
  // By job and run: until when its work may live, by the true time. A machine that is frozen does
  // nothing, and what is frozen alone is killed at its deadline by the guardian.
  std::map<std::string, std::map<const void*, MonoTime>> live;
  std::map<std::string, std::vector<WallTime>> backfills;  // when started, by the store's clock
  int kills = 0;
};

// What the machines stand on.
struct SimGround {
  Scheduler& scheduler;
  FaultStore& store;
  api::Leases& leases;
  SimLaws& laws;
};

class SimMachine final : public Actor {
 public:
  struct Chances {
    std::uint64_t kill = 400;  // one step in so many: the scheduler dies
    std::uint64_t crash = 3;   // of those, one in so many: the whole machine
    Millis longest_away = std::chrono::minutes(30);
    Millis longest_run = std::chrono::minutes(9);
  };
  SimMachine(SimGround ground, SimClock& clock, SlotTruth& truth, std::string name,
             std::vector<schedule::JobConfig> jobs, Chances chances);
  std::string name() const override { return name_; }
  std::optional<MonoTime> step(MonoTime now) override;

  // From now on it is neither killed nor does it start anything: to let the world come to rest.
  void calm() { calm_ = true; }
  service::SlotService& slots() { return slots_; }

 private:
  // One process that runs one slot: between two steps of it everything else may happen.
  struct Runner {
    enum class Phase { Acquire, Claim, Start, Work, End, Release, Over };
    schedule::JobConfig job;
    core::Slot slot;
    Phase phase = Phase::Acquire;
    std::string scheduler;
    std::optional<api::SlotProof> proof;
    MonoTime next{};
    MonoTime ends{};
    MonoTime renew_at{};
    MonoTime deadline{};
    bool started = false;
    core::SlotState end = core::SlotState::Ran;
  };

  void start_scheduler();
  void kill();
  void advance(Runner& runner);
  void acquire(Runner& runner);
  void begin(Runner& runner);
  void work(Runner& runner);
  void stop_work(Runner& runner);
  void skip(const Runner& runner, const api::Lease& by);
  Random& random() { return world_.scheduler.random(); }

  const SimGround world_;
  SimClock& clock_;
  SlotTruth& truth_;
  const std::string name_;
  const std::vector<schedule::JobConfig> jobs_;
  const Chances chances_;
  service::Ledger ledger_;
  service::SlotService slots_;
  std::unique_ptr<schedule::Scheduler> scheduler_;
  std::vector<std::unique_ptr<Runner>> runners_;
  MonoTime back_at_{};
  int lives_ = 0;
  bool calm_ = false;
};

// Every slot of the schedule from `begun` to the cursor is accounted for once. How many there are;
// `states` counts how they ended.
using SlotStates = std::map<std::string, std::map<std::string, int>>;
std::size_t account_for_slots(service::SlotService& slots, const schedule::JobConfig& config,
                              WallTime begun, const SlotTruth& truth, SimLaws& laws,
                              SlotStates& states);

}  // namespace stint::test
