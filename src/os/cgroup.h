// A cgroup of one's own for a tree of processes: the kernel ends all of them in one step, forks
// included.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

namespace stint::os {

class Cgroup {
 public:
  // Under the caller's own cgroup v2. Empty where none can be had (not mounted, not delegated).
  static std::optional<Cgroup> make(const std::string& name);

  const std::string& path() const { return path_; }
  // A child that starts inside the group and calls `main`, which executes something or exits, and
  // never returns. As after vfork(): it may share our memory, and then we wait until it has done
  // so. Moving a process in later would take a lock of the whole machine (measured: 5 to 15 ms).
  // `stack`: of how many bytes it may make use there. -1 and errno if the kernel cannot.
  pid_t spawn_into(void (*main)(void*), void* argument, std::size_t stack) const;
  // Takes the caller in: for a child that could not start inside. Only system calls.
  void enter() const;
  // All but processes whose first thread has ended: the kernel forgets those (Linux 6.18 too).
  void kill_all() const;
  // Whether any process is in it.
  bool populated() const;
  void remove() const;

 private:
  explicit Cgroup(std::string path);
  std::string path_;
  std::string kill_;
  std::string members_;
};

}  // namespace stint::os
