// How a child process ended, as the kernel told us, its parent.
//
// The rule it owns: an end that was not seen is unknown, never 0. An End is made from a status that
// was seen, and of nothing else; so no error leaves one at zero. Where SIGCHLD is ignored, or
// another part of the process waits for every child, the status is gone: the answer is empty.
//
// Thread safety: none needed; the functions are about one child of the caller's.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "os/fd.h"

namespace stint::os {

class End {
 public:
  // What waitpid() gave of a child that has ended.
  static End of(int wait_status) { return End(wait_status); }
  static End with_code(int code);
  int code() const;    // 128 + N: ended by signal N
  int signal() const;  // 0: it ended by itself
  bool good() const { return status_ == 0; }
  bool operator==(const End&) const = default;

 private:
  explicit End(int wait_status) : status_(wait_status) {}
  int status_;
};

// "exit code 3", "killed by signal 9", "nobody saw how".
std::string how_it_ended(const std::optional<End>& end);

// Waits for the child. Empty: somebody else was told.
std::optional<End> end_of(pid_t child);

// A look that does not wait. Not to be asked again once it does not run any more.
struct Sighting {
  bool runs;
  std::optional<End> end;  // empty though it runs no more: somebody else was told
};
Sighting look_at(pid_t child);

// A child to be waited for beside other things: by a pidfd, or by looking every few milliseconds
// where the kernel gives none. Takes nothing away: end_of() tells how it ended.
class ChildWatch {
 public:
  explicit ChildWatch(pid_t child);
  // As wait_readable(); the last of the answers: the child has ended.
  std::vector<bool> wait(std::vector<int> fds, std::optional<MonoTime> until) const;
  int fd() const { return fd_.get(); }  // -1: there is none

 private:
  pid_t child_;
  Fd fd_;
};

}  // namespace stint::os
