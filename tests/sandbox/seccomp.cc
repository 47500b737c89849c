#include "tests/sandbox/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>

namespace stint::test {
namespace {

#if defined(__x86_64__)
constexpr unsigned kFirstNew = 335;
#else
constexpr unsigned kFirstNew = 294;  // the others' common table: what follows rseq
#endif

class Filter {
 public:
  Filter() { load(offsetof(seccomp_data, nr)); }

  void load(std::size_t offset) {
    add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset)));
  }
  void refuse_if(unsigned short test, unsigned value, int error) {
    add(BPF_JUMP(static_cast<unsigned short>(BPF_JMP | test | BPF_K), value, 0, 1));
    add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)));
  }
  void allow_if(unsigned value) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  void refuse_subreaper() {
    // Anything else than prctl skips the four that follow.
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 4));
    load(offsetof(seccomp_data, args[0]));
    refuse_if(BPF_JEQ, PR_SET_CHILD_SUBREAPER, EPERM);
    load(offsetof(seccomp_data, nr));
  }
  bool install() {
    add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const sock_fprog program = {static_cast<unsigned short>(lines_.size()), lines_.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  void add(sock_filter line) { lines_.push_back(line); }
  std::vector<sock_filter> lines_;
};

}  // namespace

bool Refusals::install() const {
  if (what_.empty()) return true;
  Filter filter;
  for (const std::string& what : what_) {
    const int error = what.ends_with("ENOSYS") ? ENOSYS : EPERM;
    if (what == "subreaper") filter.refuse_subreaper();
    if (what.starts_with("pidfd=")) {
      for (const unsigned call : {SYS_pidfd_open, SYS_pidfd_send_signal, SYS_pidfd_getfd})
        filter.refuse_if(BPF_JEQ, call, error);
    }
    if (what == "new=EPERM") filter.allow_if(SYS_clone3);
    if (what == "old-clone=EPERM") filter.refuse_if(BPF_JEQ, SYS_clone3, ENOSYS);
    if (what.starts_with("new=") || what == "old-clone=EPERM")
      filter.refuse_if(BPF_JGE, kFirstNew, error);
  }
  return filter.install();
}

}  // namespace stint::test
