// Jobs and queues of `stint serve --demo`: played like its runs (demo.h), every verb a real one.
// Thread safety: one thread.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "api/leases.h"
#include "api/queue.h"
#include "api/slots.h"
#include "base/random.h"

namespace stint::app {

// A few jobs with a past, one that runs every few seconds, one that is paused.
class DemoJobs {
 public:
  // All outlive it.
  DemoJobs(api::Leases& leases, api::Slots& slots, const Clock& clock, Random& random);
  ~DemoJobs();
  DemoJobs(const DemoJobs&) = delete;
  DemoJobs& operator=(const DemoJobs&) = delete;

  void step();

 private:
  struct Played;
  void seed(Played& job);
  void seed_slot(Played& job, const core::Slot& slot, char outcome);
  void look(Played& job);
  void begin(Played& job, const core::Slot& slot);
  void finish(Played& job);
  bool take(Played& job);

  api::Leases& leases_;
  api::Slots& slots_;
  const Clock& clock_;
  Random& random_;
  std::vector<std::unique_ptr<Played>> jobs_;
};

// Producers in waves, and workers: steady, failing, and one that freezes and speaks too late.
class DemoQueues {
 public:
  // All outlive it.
  DemoQueues(api::Queue& queue, const Clock& clock, Random& random);
  ~DemoQueues();
  DemoQueues(const DemoQueues&) = delete;
  DemoQueues& operator=(const DemoQueues&) = delete;

  void step();

 private:
  struct Worker;
  struct Shelf;
  void produce(Shelf& shelf);
  void claim(Worker& worker);
  void work(Worker& worker);
  void end(Worker& worker);
  void clear_away();

  api::Queue& queue_;
  const Clock& clock_;
  Random& random_;
  std::vector<std::unique_ptr<Shelf>> shelves_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::deque<core::ItemId> finished_;  // the oldest first: a demo that is left on does not grow
};

}  // namespace stint::app
