// A cgroup of one's own for a tree of processes: the kernel ends all of them in one step, forks included.
#pragma once

#include <optional>
#include <string>

namespace stint::os {

class Cgroup {
 public:
  // Under the caller's own cgroup v2. Empty where none can be had (not mounted, not delegated).
  static std::optional<Cgroup> make(const std::string& name);

  const std::string& path() const { return path_; }
  // For a process that is about to execute something: moves the caller into the group. Async-signal-safe.
  bool join_self() const;
  void kill_all() const;
  void remove() const;

 private:
  explicit Cgroup(std::string path);
  std::string path_;
  std::string procs_;
  std::string kill_;
};

}  // namespace stint::os
