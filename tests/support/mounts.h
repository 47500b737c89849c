// File systems and machine identities for a test alone: mounted in a mount namespace of the test's
// own process, which its children share and nobody else sees. They go with the process.
//
//   if (const std::string why = Mount::missing(); !why.empty()) GTEST_SKIP() << why;
//   const Mount small({.type = "tmpfs", .target = folder, .options = "size=1m"});
#pragma once

#include <string>

namespace stint::test {

struct MountPlan {
  std::string type = {};    // tmpfs, ramfs ...; empty: `source` is bound over the target
  std::string source = {};  // for a bind
  std::string target;
  std::string options = {};
};

class Mount {
 public:
  // Why nothing can be mounted here; empty: it can. The first call enters the namespace.
  static std::string missing();

  explicit Mount(const MountPlan& plan);
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  bool ok() const { return ok_; }
  bool remount(bool read_only) const;

 private:
  const std::string target_;
  bool ok_ = false;
};

}  // namespace stint::test
