// One scheduler: has decided what is due, and has it started. Any number of them work on one store;
// they share nothing else. Driven by step(), so that the very same object runs in `stint cron` and
// in a simulation.
//
// What is due is due by the store's clock. Between two questions it is followed by our own.
// Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/events.h"
#include "api/slots.h"
#include "schedule/config.h"

namespace stint::schedule {

struct SchedulerHooks {
  // Starts the process that claims the slot and runs it. finished() is to be called when it ended.
  std::function<Status(const JobConfig&, const core::Slot&)> launch;
  std::function<void(const std::string&)> say;
  // Whether another may be started just now; step() is to be called again when that changes. May be
  // empty.
  std::function<bool()> may_launch = {};
};

class Scheduler {
 public:
  // All must outlive it. `id` names this scheduler, for the others: unique.
  Scheduler(api::Slots& slots, api::Events& events, const Clock& clock, std::string id,
            SchedulerHooks hooks);

  // The jobs from now on; those that run go on.
  Status load(Config config);
  // Does what is due; returns when to call again.
  MonoTime step();
  void finished(const std::string& job);
  // Something was asked for by hand: look at all that is open.
  void look_soon() { sweep_at_ = MonoTime::min(); }
  // Starts nothing more.
  void stop() { stopping_ = true; }

  std::size_t running() const { return running_; }
  // Nothing runs, and nothing is ready to be started.
  bool quiet() const;

 private:
  struct Entry {
    JobConfig config;
    WallTime next_at{};                 // when to look at it, by the clock that says what is due
    std::optional<core::Slot> waiting;  // ours to start, when there is a place for it
    bool held_back = false;             // there was none
    core::Slot last;                    // that was started; not at once again
    MonoTime again_at = MonoTime::min();
    bool same() const {
      return waiting && waiting->at == last.at && waiting->attempt == last.attempt;
    }
    bool running = false;
    bool stopped = false;  // another configuration counts
    bool removed = false;  // no longer in the file; it still runs
    MonoTime kept_at{};
    std::string trouble;  // the last fault, told once
  };

  WallTime due_now() const;
  void set_due_clock(WallTime now);
  void sweep();
  void settle_stranger(const std::string& job);
  void decide();
  void settle(Entry& entry, const api::Decided& decided);
  void trouble(Entry& entry, const Error& error);
  void stop_job(Entry& entry);
  void tell(const Entry& entry, const api::Decided& decided);
  void check_clock(const Entry& entry, const api::Decided& decided);
  void start_waiting();
  bool launch(Entry& entry);
  void keep_waiting();
  MonoTime next_wake() const;
  Entry* find(const std::string& job);

  api::Slots& slots_;
  api::Events& events_;
  const Clock& clock_;
  const std::string id_;
  const SchedulerHooks hooks_;

  std::vector<Entry> entries_;
  std::size_t concurrency_ = 0;
  Millis stagger_{0};
  Nanos ahead_{0};  // of the clock that says what is due over ours
  MonoTime sweep_at_ = MonoTime::min();
  MonoTime next_backfill_ = MonoTime::min();
  std::size_t running_ = 0;
  bool stopping_ = false;
  std::set<std::string> clock_told_;
  std::map<std::string, int> strangers_;  // open jobs of no file of ours: in how many sweeps
};

}  // namespace stint::schedule
