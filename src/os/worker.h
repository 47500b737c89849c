// A program of ours in the background, in a process group of its own: a signal from the terminal
// reaches it only through us. Nothing to read on its stdin; it writes where we do.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

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

  int fd() const { return exit_.get(); }  // readable when it has ended
  // Readable when it has called tell_ready(), or ended.
  int ready_fd() const { return ready_.get(); }
  pid_t pid() const { return pid_; }
  // 128 + N: ended by signal N. Empty: it runs. Not to be asked again after an answer.
  std::optional<int> exited();
  void signal(int number) const;

 private:
  Worker() = default;
  pid_t pid_ = -1;
  Fd exit_;  // pidfd
  Fd ready_;
};

// In the worker: what is hard on others is over. Call it once, before anything is forked.
constexpr int kReadyDescriptor = 3;
void tell_ready();

// The working directory of the whole program, from now on.
Status change_directory(const std::string& path);

}  // namespace stint::os
