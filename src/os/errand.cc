#include "os/errand.h"

#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/ended.h"

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
  const bool over = ChildWatch(child).wait({}, SystemClock().mono() + limit).back();
  if (!over) ::kill(-child, SIGKILL);
  const auto end = end_of(child);
  return over && end && end->good();
}

void stop_self() { ::kill(::getpid(), SIGSTOP); }

}  // namespace stint::os
