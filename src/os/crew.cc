#include "os/crew.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/text.h"
#include "os/exec_words.h"
#include "os/pause.h"

namespace stint::os {
namespace {

Result<pid_t> start(const std::vector<std::string>& argv,
                    const std::vector<std::string>& environment, const sigset_t& mask) {
  std::vector<std::string> words = argv;
  std::vector<std::string> env = environment;
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, argv.front().c_str(), nullptr, &attributes,
                                  exec_words(words).data(), exec_words(env).data());
  ::posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  return Error{Code::Failed,
               cat("cannot start ", quoted(argv.front()), ": ", std::strerror(error))};
}

std::string how_it_ended(pid_t pid, int status, std::size_t left) {
  return cat("worker ", pid, WIFSIGNALED(status) ? " was killed by signal " : " ended with code ",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
             "; nobody takes its place: ", left, left == 1 ? " is left" : " are left");
}

bool ends(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace

Result<CrewEnd> run_crew(const std::vector<std::string>& argv,
                         const std::vector<std::string>& environment, std::size_t count,
                         Signals& signals, const std::function<void(const std::string&)>& say) {
  std::set<pid_t> crew;
  std::string trouble;
  for (std::size_t i = 0; i < count && trouble.empty(); ++i) {
    auto pid = start(argv, environment, signals.original_mask());
    if (pid) {
      crew.insert(*pid);
    } else {
      trouble = pid.error().message;
    }
  }
  if (!trouble.empty()) {
    for (const pid_t pid : crew) ::kill(pid, SIGTERM);
  }
  CrewEnd end;
  while (!crew.empty()) {
    int status = 0;
    const pid_t gone = ::waitpid(-1, &status, WNOHANG);
    if (gone > 0) {
      crew.erase(gone);
      const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      end.worst = std::max(end.worst, code);
      if (code != 0) say(how_it_ended(gone, status, crew.size()));
      continue;
    }
    if (gone < 0 && errno != EINTR) break;
    wait_readable({signals.fd()}, std::nullopt);
    while (const auto received = signals.take()) {
      // The terminal has told them itself.
      if (!ends(received->number) || received->from_terminal) continue;
      for (const pid_t pid : crew) ::kill(pid, received->number);
    }
  }
  if (!trouble.empty()) return Error{Code::Failed, trouble};
  return end;
}

}  // namespace stint::os
