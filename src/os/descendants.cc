#include "os/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "os/fd.h"
#include "os/sandbox.h"

namespace stint::os {
namespace {

struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = 0;             // as in /proc
  std::uint64_t threads = 0;  // with the first one, ended or not
  std::uint64_t born = 0;     // in ticks since the boot
  std::string name;
};

// A field of the rest of a stat line, behind the name: the state is number 0.
std::uint64_t field(std::string_view rest, std::size_t number) {
  for (; number > 0; --number) rest.remove_prefix(std::min(rest.find(' '), rest.size() - 1) + 1);
  std::uint64_t value = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), value);
  return value;
}

// A stat line is short; a longer one is cut far behind what is read here.
std::optional<ProcessInfo> read_process(pid_t pid) {
  std::array<char, 32> path{};
  constexpr std::string_view kStart = "/proc/";
  auto* end = std::copy(kStart.begin(), kStart.end(), path.begin());
  end = std::to_chars(end, path.end(), pid).ptr;
  constexpr std::string_view kEnd = "/stat";
  std::copy(kEnd.begin(), kEnd.end(), end);
  const Fd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> text{};
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (got <= 0) return std::nullopt;
  const std::string_view line(text.data(), static_cast<std::size_t>(got));
  // The name may hold anything, also a parenthesis: what follows the last one counts.
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == line.npos || close == line.npos || close + 4 >= line.size()) return std::nullopt;
  const std::string_view rest = line.substr(close + 2);
  constexpr std::size_t kParent = 1;
  constexpr std::size_t kThreads = 17;
  constexpr std::size_t kBorn = 19;
  return ProcessInfo{.pid = pid,
                     .parent = static_cast<pid_t>(field(rest, kParent)),
                     .state = rest.front(),
                     .threads = field(rest, kThreads),
                     .born = field(rest, kBorn),
                     .name = std::string(line.substr(open + 1, close - open - 1))};
}

// A first thread that has ended is shown as a zombie, also while others live.
bool dead(const ProcessInfo& process) {
  if (process.parent == ::getpid()) return !lives(process.pid);
  return (process.state == 'Z' || process.state == 'X') && process.threads <= 1;
}

std::multimap<pid_t, ProcessInfo> all_processes() {
  std::multimap<pid_t, ProcessInfo> by_parent;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return by_parent;
  while (const dirent* entry = ::readdir(proc)) {
    pid_t pid = 0;
    const std::string_view name(entry->d_name);
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    if (auto process = read_process(pid)) by_parent.emplace(process->parent, std::move(*process));
  }
  ::closedir(proc);
  return by_parent;
}

std::vector<ProcessInfo> living_below(pid_t root) {
  const auto by_parent = all_processes();
  std::vector<ProcessInfo> found;
  std::vector<std::pair<pid_t, std::uint64_t>> parents = {{root, 0}};
  while (!parents.empty()) {
    const auto [parent, born] = parents.back();
    parents.pop_back();
    const auto [first, last] = by_parent.equal_range(parent);
    for (auto at = first; at != last; ++at) {
      // Older than its parent: the number is another's by now.
      if (at->second.born < born) continue;
      parents.emplace_back(at->second.pid, at->second.born);
      if (!dead(at->second)) found.push_back(at->second);
    }
  }
  return found;
}

// A number may be another process by the time that it is signalled: it is held by a descriptor
// first, and must still be what was seen.
void signal_exactly(const ProcessInfo& seen, int signal) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, seen.pid, 0)));
  if (!process) return;
  const auto now = read_process(seen.pid);
  if (!now || now->born != seen.born) return;
  ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

// Of a child; its own number if it fits `flags` now, 0 if not, nothing if it is no child of ours.
std::optional<pid_t> ask_of_child(idtype_t kind, pid_t child, int flags) {
  siginfo_t info{};
  if (::waitid(kind, static_cast<id_t>(child), &info, flags | WNOHANG | WNOWAIT | __WALL) != 0)
    return std::nullopt;
  return info.si_pid;
}

// The newest number that was given out: that of a process which ends at once, and sends no SIGCHLD.
// 0: it cannot be had.
pid_t newest_number() {
  const auto probe = static_cast<pid_t>(::syscall(SYS_clone, 0, 0, 0, 0, 0));
  if (probe == 0) ::_exit(0);
  siginfo_t ended{};
  if (probe > 0) ::waitid(P_PID, static_cast<id_t>(probe), &ended, WEXITED | __WALL);
  return std::max(probe, 0);
}

// The greatest number that there can be (PID_MAX_LIMIT).
constexpr pid_t kMostPid = 4'194'304;

// Without /proc nobody lists them, but the kernel knows of each number whether it is a child of
// ours.
std::vector<pid_t> own_between(pid_t from, pid_t to) {
  std::vector<pid_t> found;
  for (pid_t pid = from; pid <= to; ++pid) {
    if (ask_of_child(P_PID, pid, WEXITED)) found.push_back(pid);
  }
  return found;
}

// Numbers are given out upwards: what is ours came after us, and before the newest. If there was no
// room any more they began anew from below. The first that are found will do.
std::vector<pid_t> own_by_number() {
  constexpr pid_t kBlock = 16'384;
  const pid_t self = ::getpid();
  const pid_t newest = newest_number();
  auto found = own_between(newest > self ? self + 1 : 1, newest);
  for (pid_t from = self + 1; found.empty() && from <= kMostPid; from += kBlock)
    found = own_between(from, std::min(from + kBlock - 1, kMostPid));
  if (found.empty()) found = own_between(1, self);
  return found;
}

}  // namespace

bool can_walk() { return look_at_proc() == Proc::Ours && pidfd_usable(); }

std::size_t signal_descendants(pid_t root, int signal) {
  const auto living = living_below(root);
  for (const ProcessInfo& process : living) signal_exactly(process, signal);
  return living.size();
}

std::string describe_living(pid_t root) {
  std::string out;
  for (const ProcessInfo& process : living_below(root)) {
    if (!out.empty()) out += ", ";
    out += cat(process.pid, " (", printable(process.name), ", state ", process.state, ")");
  }
  return out;
}

bool lives(pid_t child) { return ask_of_child(P_PID, child, WEXITED) == 0; }

bool stands_still(pid_t child) { return ask_of_child(P_PID, child, WSTOPPED) == child; }

bool has_children() { return ask_of_child(P_ALL, 0, WEXITED).has_value(); }

std::vector<pid_t> own_children() {
  if (!has_children()) return {};
  if (look_at_proc() != Proc::Ours) return own_by_number();
  std::vector<pid_t> found;
  const auto all = all_processes();
  const auto [first, last] = all.equal_range(::getpid());
  for (auto at = first; at != last; ++at) found.push_back(at->second.pid);
  return found;
}

std::size_t signal_own_children(int signal, const std::vector<pid_t>& spared) {
  std::size_t living = 0;
  for (const pid_t child : own_children()) {
    if (std::ranges::find(spared, child) != spared.end() || !lives(child)) continue;
    ++living;
    ::kill(child, signal);
  }
  return living;
}

}  // namespace stint::os
