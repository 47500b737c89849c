#include "os/cgroup.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/text.h"
#include "os/fd.h"
#include "os/files.h"

namespace stint::os {
namespace {

// "0::/user.slice/..." in /proc/self/cgroup names our place in the v2 hierarchy.
std::optional<std::string> own_path() {
  const auto text = read_file("/proc/self/cgroup", 64U << 10U);
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.starts_with("0::")) return std::string(line.substr(3));
  }
  return std::nullopt;
}

bool write_text(const char* path, std::string_view text) {
  const Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

Cgroup::Cgroup(std::string path) : path_(std::move(path)), kill_(path_ + "/cgroup.kill") {}

std::optional<Cgroup> Cgroup::make(const std::string& name) {
  const auto here = own_path();
  if (!here) return std::nullopt;
  // All v2, or v2 beside v1 ("hybrid").
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    const std::string parent = cat(mount, *here == "/" ? "" : *here);
    if (!exists(parent + "/cgroup.procs") || !exists(parent + "/cgroup.subtree_control")) continue;
    Cgroup group(cat(parent, "/", name));
    if (::mkdir(group.path_.c_str(), 0755) != 0) return std::nullopt;
    if (exists(group.kill_)) return group;
    group.remove();
    return std::nullopt;
  }
  return std::nullopt;
}

pid_t Cgroup::fork_into() const {
  const Fd directory(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return -1;
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<std::uint64_t>(directory.get());
  return static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
}

void Cgroup::kill_all() const { write_text(kill_.c_str(), "1"); }

void Cgroup::remove() const { ::rmdir(path_.c_str()); }

}  // namespace stint::os
