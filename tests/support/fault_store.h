// A store that keeps its promises badly: answers get lost, requests get lost, commits come late.
//
// What it holds is a real MemoryStore on a simulated clock; only the way there and back is faulty.
// Every fault is one that a network gives: an answer UnknownOutcome was applied, was not, or will
// be.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "store/memory/memory_store.h"
#include "tests/support/sim.h"

namespace stint::test {

// Chances in a thousand, for each commit (unavailable_read: for each read).
struct FaultPlan {
  unsigned lose_reply = 30;    // applied, answered UnknownOutcome
  unsigned lose_request = 20;  // not applied, answered UnknownOutcome
  unsigned unavailable = 20;   // not applied, answered Unavailable
  unsigned apply_late = 20;    // answered UnknownOutcome, applied up to `latest` later
  unsigned slow = 200;         // others run, up to `slowest`, between the call and the commit
  unsigned slow_reply = 100;   // others run between the commit and its answer
  unsigned unavailable_read = 10;
  Millis latest{2'000};
  Millis slowest{400};
};

// For testing the test: a store that is wrong in itself.
enum class Sabotage {
  None,
  IgnoreTimers,    // commits do not look at the timers: revives what has run out
  IgnoreVersions,  // commits do not look at versions: two get the same token
};

class FaultStore final : public store::Store, public Actor {
 public:
  // Add it to the scheduler with `clock`, which is the store's own.
  FaultStore(Scheduler& scheduler, const SimClock& clock, const FaultPlan& plan, Sabotage sabotage);

  // Off while a world is set up.
  void set_faulty(bool faulty) { faulty_ = faulty; }
  // Called after each commit that was really applied: before anybody else can run.
  void after_each_commit(std::function<void()> look) { look_ = std::move(look); }
  // What is really there, without faults.
  store::MemoryStore& truth() { return truth_; }
  const SimClock& clock() const { return clock_; }
  const std::map<std::string, int>& faults() const { return faults_; }

  const store::Capabilities& capabilities() const override { return truth_.capabilities(); }
  const store::Opening& opening() const override { return truth_.opening(); }
  Result<store::Reading> read(const std::vector<std::string>& keys) override;
  Result<store::Reading> scan(const ScanRange& range) override;
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override { return truth_.watch(key); }
  Result<std::uint64_t> appended(const std::string& prefix) override {
    return truth_.appended(prefix);
  }
  Result<std::uint64_t> revision() override { return truth_.revision(); }

  std::string name() const override { return "store"; }
  std::optional<MonoTime> step(MonoTime now) override;

 private:
  struct Late {
    MonoTime due;
    std::vector<store::Step> steps;
    store::Sync sync;
  };
  bool chance(unsigned per_thousand, const char* fault);
  void pass_time();
  Result<store::CommitAnswer> apply(std::vector<store::Step> steps, store::Sync sync);
  std::optional<MonoTime> next_late() const;

  Scheduler& scheduler_;
  const SimClock& clock_;
  const FaultPlan plan_;
  const Sabotage sabotage_;
  store::MemoryStore truth_;
  bool faulty_ = false;
  std::function<void()> look_;
  std::vector<Late> late_;
  std::map<std::string, int> faults_;
};

}  // namespace stint::test
