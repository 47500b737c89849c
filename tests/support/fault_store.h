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

// Chances in a thousand, for each commit (unavailable_read: for each read). Every request and every
// answer takes up to `usual`.
struct FaultPlan {
  unsigned lose_reply = 30;    // applied, answered UnknownOutcome
  unsigned lose_request = 20;  // not applied, answered UnknownOutcome
  unsigned unavailable = 20;   // not applied, answered Unavailable
  unsigned apply_late = 20;    // answered UnknownOutcome, applied up to `latest` later
  unsigned slow = 200;         // others run, up to `slowest`, between the call and the commit
  unsigned slow_reply = 100;   // others run between the commit and its answer
  unsigned unavailable_read = 10;
  unsigned duplicate = 5;  // applied, and up to `latest` later it arrives once more
  Millis latest{2'000};
  Millis slowest{400};
  Nanos usual = std::chrono::microseconds(1'500);
  // It may lose the end of what it acknowledged, and then says so (Capabilities::tail_record).
  bool loses_tails = false;
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
  using Look = std::function<void(const std::vector<store::Step>&)>;
  void after_each_commit(Look look) { look_ = std::move(look); }
  // Whether the process that asks cannot reach it. May be empty.
  void set_cut_off(std::function<bool()> cut_off) { cut_off_ = std::move(cut_off); }
  void set_plan(const FaultPlan& plan) { plan_ = plan; }

  // What a replica has, or a backup; and back to that. A fail-over says what it did, a restored
  // backup does not.
  void keep_image() { image_ = truth_.image(); }
  bool has_image() const { return image_.has_value(); }
  void fail_over();
  void restore();
  // What is really there, without faults.
  store::MemoryStore& truth() { return truth_; }
  const SimClock& clock() const { return clock_; }
  const std::map<std::string, int>& faults() const { return faults_; }

  const store::Capabilities& capabilities() const override { return capabilities_; }
  const store::Opening& opening() const override { return truth_.opening(); }
  Result<store::Reading> read(const std::vector<std::string>& keys) override;
  Result<store::Reading> scan(const ScanRange& range) override;
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override { return truth_.watch(key); }
  Result<std::uint64_t> appended(const std::string& prefix) override {
    return truth_.appended(prefix);
  }
  Result<std::uint64_t> revision() override;

  std::string name() const override { return "store"; }
  std::optional<MonoTime> step(MonoTime now) override;

 private:
  struct Late {
    MonoTime due;
    std::vector<store::Step> steps;
    store::Sync sync;
  };
  bool chance(unsigned per_thousand, const char* fault);
  // The way there, or back. False: whoever asked is dead, or cannot reach it.
  bool travel();
  void pass_time();
  Result<store::CommitAnswer> apply(std::vector<store::Step> steps, store::Sync sync);
  std::optional<MonoTime> next_late() const;

  Scheduler& scheduler_;
  const SimClock& clock_;
  FaultPlan plan_;
  const Sabotage sabotage_;
  store::MemoryStore truth_;
  store::Capabilities capabilities_;
  std::optional<store::MemoryStore::Image> image_;
  std::uint64_t jumped_ = 0;  // of the versions, and not of the revision
  bool faulty_ = false;
  Look look_;
  std::function<bool()> cut_off_;
  std::vector<Late> late_;
  std::map<std::string, int> faults_;
};

}  // namespace stint::test
