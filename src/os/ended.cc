#include "os/ended.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"

namespace stint::os {
namespace {

constexpr Millis kRound{5};

// A child that somebody else has waited for has ended, too.
bool has_ended(pid_t child) {
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
    return errno == ECHILD;
  return info.si_pid == child;
}

}  // namespace

End End::with_code(int code) { return End(W_EXITCODE(code, 0)); }

int End::code() const {
  constexpr int kSignalled = 128;
  return WIFSIGNALED(status_) ? kSignalled + WTERMSIG(status_) : WEXITSTATUS(status_);
}

int End::signal() const { return WIFSIGNALED(status_) ? WTERMSIG(status_) : 0; }

std::string how_it_ended(const std::optional<End>& end) {
  if (!end) return "nobody saw how";
  if (end->signal() != 0) return cat("killed by signal ", end->signal());
  return cat("exit code ", end->code());
}

std::optional<End> end_of(pid_t child) {
  int status = 0;
  pid_t seen = 0;
  do {
    seen = ::waitpid(child, &status, 0);
  } while (seen < 0 && errno == EINTR);
  return seen == child ? std::optional(End::of(status)) : std::nullopt;
}

Sighting look_at(pid_t child) {
  int status = 0;
  const pid_t seen = ::waitpid(child, &status, WNOHANG);
  if (seen == child) return {.runs = false, .end = End::of(status)};
  return {.runs = seen == 0 || errno == EINTR, .end = {}};
}

ChildWatch::ChildWatch(pid_t child)
    : child_(child), fd_(static_cast<int>(::syscall(SYS_pidfd_open, child, 0))) {}

std::vector<bool> ChildWatch::wait(std::vector<int> fds, std::optional<MonoTime> until) const {
  if (fd_) {
    fds.push_back(fd_.get());
    return wait_readable(fds, until);
  }
  while (true) {
    const bool ended = has_ended(child_);
    const MonoTime now = SystemClock().mono();
    const MonoTime round = ended ? now : std::min(now + kRound, until.value_or(MonoTime::max()));
    std::vector<bool> ready = wait_readable(fds, round);
    const bool any = std::ranges::find(ready, true) != ready.end();
    ready.push_back(ended);
    if (any || ended || (until && now >= *until)) return ready;
  }
}

}  // namespace stint::os
