// System calls that a sandbox refuses: a seccomp filter, without a library.
#pragma once

#include <string>
#include <vector>

namespace stint::test {

class Refusals {
 public:
  // pidfd=ENOSYS, pidfd=EPERM: the calls on pidfds.
  // new=ENOSYS: all that is newer than Linux 4.18. new=EPERM: the same but clone3, without which
  //   libc itself gives up; old-clone=EPERM: with clone3 missing (ENOSYS).
  // subreaper: prctl(PR_SET_CHILD_SUBREAPER).
  void add(const std::string& what) { what_.push_back(what); }
  // For this process and all that it starts. True if there is nothing to refuse.
  bool install() const;

 private:
  std::vector<std::string> what_;
};

}  // namespace stint::test
