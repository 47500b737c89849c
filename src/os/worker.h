// A program of ours in the background, in a process group of its own: a signal from the terminal
// reaches it only through us. Nothing to read on its stdin; it writes where we do.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "os/ended.h"
#include "os/fd.h"

namespace stint::os {

class Worker {
 public:
  struct Start {
    std::vector<std::string> argv;         // argv[0] is a path
    std::vector<std::string> environment;  // the whole of it
    sigset_t signal_mask{};
  };
  static Result<Worker> start(const Start& start);

  // Readable when it has ended; -1 where the kernel gives no pidfd: SIGCHLD tells then.
  int fd() const { return watch_->fd(); }
  // Readable when it has called tell_ready(), or ended.
  int ready_fd() const { return ready_.get(); }
  pid_t pid() const { return pid_; }
  // Not to be asked again once it does not run any more.
  Sighting look() const { return look_at(pid_); }
  // Waits for it.
  void wait() const { end_of(pid_); }
  void signal(int number) const;

 private:
  Worker() = default;
  pid_t pid_ = -1;
  std::optional<ChildWatch> watch_;
  Fd ready_;
};

// In the worker: what is hard on others is over. Call it once, before anything is forked.
constexpr int kReadyDescriptor = 3;
void tell_ready();

// The working directory of the whole program, from now on.
Status change_directory(const std::string& path);

}  // namespace stint::os
