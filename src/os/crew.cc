#include "os/crew.h"

#include <signal.h>
#include <spawn.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/text.h"
#include "os/ended.h"
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

std::string words_of(const std::optional<End>& end) {
  if (!end) return " ended, and nobody saw how";
  if (end->signal() != 0) return cat(" was killed by signal ", end->signal());
  return cat(" ended with code ", end->code());
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
  bool unseen = false;
  while (!crew.empty()) {
    for (auto at = crew.begin(); at != crew.end();) {
      const Sighting seen = look_at(*at);
      if (seen.runs) {
        ++at;
        continue;
      }
      const pid_t gone = *at;
      at = crew.erase(at);
      unseen = unseen || !seen.end;
      if (seen.end) end.worst = std::max(end.worst, seen.end->code());
      if (seen.end && seen.end->good()) continue;
      say(cat("worker ", gone, words_of(seen.end), "; nobody takes its place: ", crew.size(),
              crew.size() == 1 ? " is left" : " are left"));
    }
    if (crew.empty()) break;
    wait_readable({signals.fd()}, std::nullopt);
    while (const auto received = signals.take()) {
      // The terminal has told them itself.
      if (!ends(received->number) || received->from_terminal) continue;
      for (const pid_t pid : crew) ::kill(pid, received->number);
    }
  }
  if (!trouble.empty()) return Error{Code::Failed, trouble};
  if (unseen) return Error{Code::UnknownOutcome, "nobody saw how some of the workers ended"};
  return end;
}

}  // namespace stint::os
