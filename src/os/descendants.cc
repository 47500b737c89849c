#include "os/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <map>
#include <string_view>

#include "base/text.h"
#include "os/fd.h"

namespace stint::os {
namespace {

// A stat line is short; a longer one is cut far behind what is read here.
bool read_stat(pid_t pid, ProcessInfo& info, std::string* name) {
  std::array<char, 32> path{};
  constexpr std::string_view kStart = "/proc/";
  auto* end = std::copy(kStart.begin(), kStart.end(), path.begin());
  end = std::to_chars(end, path.end(), pid).ptr;
  constexpr std::string_view kEnd = "/stat";
  std::copy(kEnd.begin(), kEnd.end(), end);
  const Fd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  std::array<char, 512> text{};
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (got <= 0) return false;
  const std::string_view line(text.data(), static_cast<std::size_t>(got));
  // The name may hold anything, also a parenthesis: what follows the last one counts.
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  if (open == line.npos || close == line.npos || close + 4 >= line.size()) return false;
  info.pid = pid;
  info.state = line[close + 2];
  const char* number = line.data() + close + 4;
  std::from_chars(number, line.data() + line.size(), info.parent);
  if (name != nullptr) *name = line.substr(open + 1, close - open - 1);
  return true;
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
    ProcessInfo info;
    if (read_stat(pid, info, nullptr)) by_parent.emplace(info.parent, info);
  }
  ::closedir(proc);
  return by_parent;
}

// A pid may be another process by the time that it is signalled: it is held by a descriptor first,
// and must still be alive then.
void signal_exactly(const ProcessInfo& seen, int signal) {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, seen.pid, 0)));
  if (!process) return;
  ProcessInfo now;
  if (!read_stat(seen.pid, now, nullptr) || now.dead()) return;
  ::syscall(SYS_pidfd_send_signal, process.get(), signal, nullptr, 0);
}

}  // namespace

std::vector<ProcessInfo> descendants_of(pid_t root) {
  const auto by_parent = all_processes();
  std::vector<ProcessInfo> found;
  std::vector<pid_t> parents = {root};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    const auto [first, last] = by_parent.equal_range(parent);
    for (auto at = first; at != last; ++at) {
      found.push_back(at->second);
      parents.push_back(at->second.pid);
    }
  }
  return found;
}

std::size_t signal_descendants(pid_t root, pid_t spared, int signal) {
  std::size_t living = 0;
  for (const ProcessInfo& process : descendants_of(root)) {
    if (process.pid == spared || process.dead()) continue;
    ++living;
    signal_exactly(process, signal);
  }
  return living;
}

std::size_t living_descendants(pid_t root, pid_t spared) {
  std::size_t living = 0;
  for (const ProcessInfo& process : descendants_of(root)) {
    if (process.pid != spared && !process.dead()) ++living;
  }
  return living;
}

std::string describe_living(pid_t root, pid_t spared) {
  std::string out;
  for (const ProcessInfo& process : descendants_of(root)) {
    if (process.pid == spared || process.dead()) continue;
    std::string name;
    ProcessInfo now;
    if (!read_stat(process.pid, now, &name)) continue;
    if (!out.empty()) out += ", ";
    out += cat(process.pid, " (", printable(name), ", state ", now.state, ")");
  }
  return out;
}

}  // namespace stint::os
