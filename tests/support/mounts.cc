#include "tests/support/mounts.h"

#include <sched.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace stint::test {
namespace {

std::string enter_namespace() {
  if (::unshare(CLONE_NEWNS) != 0) {
    return cat("no mount namespace of its own: ", std::strerror(errno));
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return cat("mounts cannot be made private: ", std::strerror(errno));
  }
  return {};
}

}  // namespace

std::string Mount::missing() {
  static const std::string why = enter_namespace();
  return why;
}

Mount::Mount(const MountPlan& plan) : target_(plan.target) {
  const bool bind = plan.type.empty();
  const char* source = bind ? plan.source.c_str() : "none";
  const char* type = bind ? nullptr : plan.type.c_str();
  ok_ = ::mount(source, target_.c_str(), type, bind ? MS_BIND : 0, plan.options.c_str()) == 0;
}

Mount::~Mount() {
  if (ok_) ::umount2(target_.c_str(), MNT_DETACH);
}

bool Mount::remount(bool read_only) const {
  unsigned long flags = MS_REMOUNT;
  if (read_only) flags |= MS_RDONLY;
  return ::mount("none", target_.c_str(), nullptr, flags, nullptr) == 0;
}

}  // namespace stint::test
