// A program that was started, whose end is seen for certain, whatever the rest of the process does.
//
// In a program of ours it is our child. The host of a library may ignore SIGCHLD, or wait for every
// child: there a helper process stands between, its parent. The helper has no signal at its end, so
// that neither concerns it; how the program ended it tells over a pipe.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/ended.h"
#include "os/fd.h"

namespace stint::os {

struct Launch {
  std::vector<std::string> argv;         // argv[0] is looked for in PATH
  std::vector<std::string> environment;  // "NAME=value", the whole of it
  // Its standard descriptors; -1: ours. REQUIRES: none of them is 0, 1 or 2.
  int in = -1;
  int out = -1;
  int talk = -1;
  bool session = false;  // of its own, without a terminal; else a process group of its own
};

class Launched {
 public:
  // Code::Failed: it could not be started.
  static Result<Launched> start(const Launch& launch);
  // As wait_readable(); the last of the answers: it has ended.
  std::vector<bool> wait(std::vector<int> fds, std::optional<MonoTime> until) const;
  // With its group. REQUIRES: wait() has not said that it ended.
  void kill() const;
  // Waits for it. Once. Empty: nobody saw how it ended.
  std::optional<End> end();

 private:
  Launched() = default;
  static Result<Launched> start_child(const Launch& launch);
  static Result<Launched> start_helper(const Launch& launch);

  pid_t pid_ = -1;  // its group's number, too
  std::optional<ChildWatch> watch_;
  Fd report_;  // of the helper, if there is one
};

}  // namespace stint::os
