#include "os/worker.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cstring>

#include "base/text.h"
#include "os/exec_words.h"

namespace stint::os {

Result<Worker> Worker::start(const Start& start) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  std::vector<std::string> words = start.argv;
  std::vector<std::string> entries = start.environment;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &start.signal_mask);
  posix_spawnattr_setflags(&attributes,
                           static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe->write.get(), kReadyDescriptor);
  Worker worker;
  worker.ready_ = std::move(pipe->read);
  const int failed = ::posix_spawn(&worker.pid_, words.front().c_str(), &actions, &attributes,
                                   exec_words(words).data(), exec_words(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    return Error{Code::Failed,
                 cat("starting ", quoted(words.front()), ": ", std::strerror(failed))};
  }
  worker.watch_.emplace(worker.pid_);
  return worker;
}

void Worker::signal(int number) const { ::kill(pid_, number); }

void tell_ready() { ::close(kReadyDescriptor); }

Status change_directory(const std::string& path) {
  if (::chdir(path.c_str()) == 0) return {};
  return Error{Code::Failed, errno_text(cat("changing to the directory ", quoted(path)))};
}

}  // namespace stint::os
