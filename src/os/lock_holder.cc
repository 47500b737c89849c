#include "os/lock_holder.h"

#include <fcntl.h>

#include <algorithm>

#include "base/text.h"
#include "os/files.h"
#include "os/sandbox.h"

namespace stint::os {
namespace {

std::string command_line(int pid) {
  auto text = read_file(cat("/proc/", pid, "/cmdline"), 64U << 10U);
  if (!text) return {};
  std::replace(text->begin(), text->end(), '\0', ' ');
  constexpr std::size_t kShown = 80;
  return printable(std::string_view(*text).substr(0, kShown));
}

}  // namespace

char process_state(int pid) {
  if (proc_at_a_glance() != Proc::Ours) return 0;
  const auto stat = read_file(cat("/proc/", pid, "/stat"), 64U << 10U);
  if (!stat) return 0;
  // The name in parentheses may hold anything, also a parenthesis: the state follows the last one.
  const std::size_t after_name = stat->rfind(')');
  if (after_name == std::string::npos || after_name + 2 >= stat->size()) return 0;
  return (*stat)[after_name + 2];
}

std::string describe_process(int pid) {
  if (proc_at_a_glance() != Proc::Ours) return cat("process ", pid);
  std::string out = cat("process ", pid, " (", trim(command_line(pid)), ")");
  const char state = process_state(pid);
  if (state == 'T' || state == 't') out += ", which is stopped";
  if (state == 'D') out += ", which waits for a disk";
  return out;
}

bool holds_write_lock(int pid) {
  if (proc_at_a_glance() != Proc::Ours) return false;
  const auto table = read_file("/proc/locks", 4U << 20U);
  if (!table) return false;
  // "3: POSIX  ADVISORY  WRITE 4711 fe:00:11043719 128 128"; who only waits has "->" in it.
  for (const std::string_view line : split(*table, '\n')) {
    const std::size_t kind = line.find(" WRITE ");
    if (kind == line.npos || line.find("->") != line.npos) continue;
    if (line.substr(kind + 7).starts_with(cat(pid, " "))) return true;
  }
  return false;
}

std::string describe_lock_holder(const std::string& path, long byte) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return {};
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  if (::fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return {};
  if (lock.l_pid <= 0) return "a process in another container";
  return describe_process(lock.l_pid);
}

}  // namespace stint::os
