// A network namespace with one cable to the test: a machine that can be cut off and comes back.
//
//   if (const std::string why = NetworkNamespace::missing(); !why.empty()) GTEST_SKIP() << why;
//   NetworkNamespace there;
//   EtcdNode node("s3", {.host = there.inside(), .enter = there.enter()});
//   there.cut();   // packets are dropped in both directions, nobody is told
//   there.heal();
//
// It has no name: namespace and cable go with the process that keeps it open, also when the test is
// killed. Each object belongs to the thread that made it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/support/process.h"

namespace stint::test {

class NetworkNamespace {
 public:
  // Why none can be had here; empty: it can.
  static std::string missing();

  NetworkNamespace();
  // Of the making.
  const Status& status() const { return status_; }

  const std::string& here() const { return here_; }      // the test's end of the cable
  const std::string& inside() const { return inside_; }  // the namespace's end
  // What a command line begins with to run inside.
  std::vector<std::string> enter() const;

  // From everything.
  Status cut();
  // From these ports on both sides only: everything else goes on.
  Status cut_ports(const std::vector<std::uint16_t>& ports);
  Status heal();

 private:
  Status make();
  Status run_inside(std::vector<std::string> argv, const std::string& input = {}) const;

  std::string here_;
  std::string inside_;
  std::unique_ptr<Child> keeper_;
  Status status_;
};

}  // namespace stint::test
