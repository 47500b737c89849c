// Runs a command under leases: watches lease, deadline, child, progress and signals in one place,
// and ends the whole tree when the leases are lost or the deadline passes. G7
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/leases.h"
#include "core/holder_policy.h"
#include "holder/keeper.h"
#include "holder/keeper_thread.h"
#include "os/ended.h"
#include "os/pump.h"
#include "os/signals.h"
#include "os/tree.h"

namespace stint::holder {

struct SuperviseRequest {
  std::vector<std::string> command;
  std::vector<std::string> environment;
  core::HoldSettings settings;
  std::optional<Millis> progress_timeout;
  bool progress_on_output = false;
  std::function<void(MonoTime deadline)> deadline_moved;
  std::function<void(const std::string&)> say;
  // Called once, when the child is being started. May be empty.
  std::function<void()> started = {};
  // The store's clock was set, by this much. Called on the keeper's thread.
  std::function<void(Millis)> clock_stepped;
  int input = -1;                           // the child's stdin, if not our own
  std::vector<std::string> temporary = {};  // files that go with the work
  // True: the signal was meant for the supervisor alone, and is not passed on. May be empty.
  std::function<bool(int)> keeps_signal = {};
};

struct RunEnd {
  enum class How {
    Exited,       // the child ended by itself, or by a signal that was passed on
    NotExecuted,  // exec_error says why
    Lost,         // the store said so
    Overdue,      // the deadline passed without an answer
    Stalled,      // no progress
    Unguarded,    // the guardian was killed
  };
  How how = How::Exited;
  bool started = true;               // false: it was lost before the work began
  std::optional<int> told;           // the last signal that was to end it and was passed on
  std::optional<Nanos> least_slack;  // before the deadline, at the latest renewal
  Nanos slept{0};                    // of the machine, meanwhile
  std::optional<os::End> child;      // empty: nobody saw how it ended
  int exec_error = 0;
  bool seen_empty = false;  // no process of the tree is alive: the leases may be released
  std::string survivors;    // otherwise: these
  bool max_hold = false;    // Overdue: not because no answer came, it was held as long as it may be
  // Also of work that ended by itself before the loss was noticed: another may have worked beside
  // it.
  std::optional<api::Lost> lost;
  std::string lost_resource;
  Token lost_token;  // of that resource; of the first one if none was named
};

// Before any lease is taken: whether the work can be ended for certain where we are. `say` is told
// what is weaker. An error: it cannot, and that was not accepted.   G7
Status check_sight(bool unsafe_tree, const std::function<void(const std::string&)>& say);

class Supervisor {
 public:
  // All must outlive it. `signals` were blocked before the first thread.
  Supervisor(api::Leases& leases, const Clock& clock, os::Signals& signals, Keeper& keeper,
             const SuperviseRequest& request, std::vector<ResourceName> watched,
             std::vector<std::unique_ptr<Watch>> watches);

  Result<RunEnd> run();

 private:
  enum class Phase { Running, Stopping, Killing };

  Result<std::unique_ptr<os::Tree>> start_tree();
  void watch_leases();
  bool turn();  // one look at everything; false: done
  void on_signals();
  void on_tree();
  void judge_exit(bool by_guardian);
  void on_leases();
  void on_progress();
  void on_time();
  void begin_stop(RunEnd::How how, Millis grace);
  void publish_deadline();
  MonoTime next_wake() const;
  void ensure_thread();
  MonoTime thread_due() const;

  api::Leases& leases_;
  const Clock& clock_;
  os::Signals& signals_;
  Keeper& keeper_;
  const SuperviseRequest& request_;
  const std::vector<ResourceName> watched_;

  std::unique_ptr<os::Tree> tree_;
  std::vector<std::unique_ptr<os::Pump>> pumps_;
  std::vector<std::unique_ptr<Watch>> watches_;
  // Made at once, for descriptors may be short later; started when first needed, for a short run
  // never pays for a thread.
  std::unique_ptr<KeeperThread> thread_;
  std::optional<MonoTime> thread_again_;  // it could not be started: when to try again

  // When to begin to watch for revocations. Not at once: the kernel takes 10 ms to take an inotify
  // watch down, and most runs that end within that time were never revoked.
  std::optional<MonoTime> watch_from_;

  Phase phase_ = Phase::Running;
  RunEnd end_;
  bool done_ = false;
  int terminations_ = 0;
  MonoTime kill_from_{};   // Stopping: when killing begins
  MonoTime give_up_at_{};  // Killing: when it is said that something cannot be killed
  MonoTime published_{};
  Nanos progress_seen_{0};  // as os::awake() counts: a machine that sleeps is not wedged
  std::string progress_;
  std::optional<WallTime> progress_at_;
  bool told_unsure_ = false;
};

}  // namespace stint::holder
