#include "os/sandbox.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "os/cgroup.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/files.h"

namespace stint::os {
namespace {

// A number and nothing else.
std::optional<pid_t> number_in(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return pid;
}

// "NSpid:\t4711\t8\t1": our number in the namespace that /proc shows, then in each one below it,
// down to our own.
std::optional<std::string_view> numbers_of(std::string_view status) {
  constexpr std::string_view kNumbers = "\nNSpid:";
  const std::size_t at = status.find(kNumbers);
  if (at == status.npos) return std::nullopt;
  const std::string_view rest = status.substr(at + kNumbers.size());
  return trim(rest.substr(0, rest.find('\n')));
}

}  // namespace

Proc proc_at_a_glance() {
  std::array<char, 32> target{};
  const ssize_t got = ::readlink("/proc/self", target.data(), target.size());
  // Where we are in none of the namespaces that it shows there is no "self", but the rest is there.
  if (got <= 0) return exists("/proc/uptime") ? Proc::Foreign : Proc::Missing;
  const auto own = number_in({target.data(), static_cast<std::size_t>(got)});
  return own == ::getpid() ? Proc::Ours : Proc::Foreign;
}

Proc look_at_proc() {
  const Proc seen = proc_at_a_glance();
  if (seen != Proc::Ours) return seen;
  const auto status = read_file("/proc/self/status", 64U << 10U);
  if (!status) return Proc::Missing;
  const auto numbers = numbers_of(*status);
  // Without the line (gVisor) nothing is proven.
  return numbers && number_in(*numbers) == ::getpid() ? Proc::Ours : Proc::Foreign;
}

bool pidfd_usable() {
  const Fd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  return self && ::syscall(SYS_pidfd_send_signal, self.get(), 0, nullptr, 0) == 0;
}

bool become_subreaper() { return ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0; }

bool cgroup_usable() {
  const auto now = SystemClock().mono().time_since_epoch().count();
  const auto group = Cgroup::make(cat("stint-look-", ::getpid(), "-", now));
  if (group) group->remove();
  return group.has_value();
}

Sight sight_of_trees() {
  if (proc_at_a_glance() == Proc::Ours) return Sight::Whole;
  return become_subreaper() || cgroup_usable() ? Sight::Top : Sight::None;
}

Sandbox look_at_sandbox() {
  return {.proc = look_at_proc(),
          .pidfd = pidfd_usable(),
          .subreaper = become_subreaper(),
          .cgroup = cgroup_usable()};
}

}  // namespace stint::os
