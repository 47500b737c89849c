#include "os/errand.h"

#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/pause.h"

namespace stint::os {

bool run_errand(const std::string& command, const std::vector<std::string>& environment,
                Millis limit) {
  std::string shell = "sh";
  std::string flag = "-c";
  std::string text = command;
  char* const argv[] = {shell.data(), flag.data(), text.data(), nullptr};
  std::vector<std::string> copies = environment;
  std::vector<char*> envp;
  for (std::string& entry : copies) envp.push_back(entry.data());
  envp.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, "sh", nullptr, &attributes, argv, envp.data());
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return false;
  const Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (ended) wait_readable({ended.get()}, SystemClock().mono() + limit);
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) == child)
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  ::kill(-child, SIGKILL);
  ::waitpid(child, &status, 0);
  return false;
}

void stop_self() { ::kill(::getpid(), SIGSTOP); }

}  // namespace stint::os
