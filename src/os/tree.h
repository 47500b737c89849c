// A child process, everything that it starts, and the guardian that watches over them.
//
//   supervisor (the caller)  ->  guardian  ->  child  ->  ...
//
// Supervisor and guardian are both subreapers: whatever the child starts, however it detaches
// itself, stays below the guardian, and below the supervisor if the guardian dies. Each of the two
// can end the tree alone:
//  - the supervisor dies: the guardian sees its pipe close and kills the tree at once;
//  - the supervisor is stopped: the guardian kills the tree at `kill_at`, then the supervisor;
//  - the guardian dies: the kernel kills the child, and the supervisor ends the rest;
//  - the guardian is stopped: the supervisor acts alone.                                         G7
// Where the tree cannot be walked over (descendants.h) only the guardian can signal it: the
// supervisor asks it to, wakes it if it is stopped, and ends it if that does not help; then all
// that it had is the supervisor's.
//
// Not thread-safe, but for set_kill_at().
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "os/cgroup.h"
#include "os/ended.h"
#include "os/fd.h"

namespace stint::os {

struct TreeOptions {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=VALUE, the whole of it
  sigset_t signal_mask{};                // what the child starts with
  MonoTime kill_at{};
  int output = -1;  // the child's stdout and stderr, if not our own
  int errors = -1;
  int input = -1;  // the child's stdin, if not our own
  // Files that go with the work. A guardian that is left alone removes them: one may hold a secret.
  std::vector<std::string> temporary;
};

class Tree {
 public:
  static Result<std::unique_ptr<Tree>> start(const TreeOptions& options);
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // Readable: look() may have something new.
  int fd() const;

  struct News {
    bool exited = false;     // the child itself
    std::optional<End> end;  // of the child, if it was seen
    int exec_error = 0;      // errno: it could not be executed
    bool suspended = false;  // stopped from the terminal (Ctrl-Z)
    bool empty = false;      // no process of the tree is alive
    bool guardian_gone = false;
    bool overdue = false;  // the guardian ended it: the time was up, and nobody else did
  };
  News look();

  // The moment at which the guardian ends the tree by itself.
  void set_kill_at(MonoTime at);

  // To the child's process group.
  void pass_on(int signal) const;
  // To every process of the tree.
  void signal_all(int signal) const;
  // One round of SIGKILL; true when nothing of the tree is alive any more.
  bool kill_round();
  // Those that could not be seen dead.
  std::string survivors() const;

  // The guardian does not react although the child is gone: do without it.
  void dismiss_guardian();
  // Whether the guardian is stopped (by a signal).
  bool guardian_stopped() const;

  // The terminal, if the child got it.
  void take_terminal() const;
  void give_terminal() const;

 private:
  struct Shared;
  Tree() = default;
  void reap_own(News& news);
  std::size_t signal_work(int signal) const;
  std::size_t signal_orphans(int signal) const;
  bool only_strangers() const;
  void ask_guardian(int signal) const;
  void press_guardian();
  // By its number, if that is a number here.
  pid_t child() const;
  Status fork_guardian(const TreeOptions& options);

  Shared* shared_ = nullptr;
  Fd alive_;             // held open as long as we live
  EventFd event_{Fd()};  // the guardian has news
  pid_t guardian_ = 0;
  bool guardian_gone_ = false;
  bool dismissed_ = false;
  bool foreground_ = false;
  bool adopts_ = false;           // we are a subreaper
  int unanswered_ = 0;            // rounds since the guardian was asked in vain
  bool mixed_ = false;            // we had children before: they are not of the tree
  std::vector<pid_t> strangers_;  // those, where /proc is ours; elsewhere nobody can tell
  std::optional<Cgroup> group_;
  mutable std::optional<int> child_status_;
};

}  // namespace stint::os
