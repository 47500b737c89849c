// A run that sees another's /proc, struck at every call by which it could harm somebody: those
// whose numbers /proc shows as its own descendants live on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/text.h"
#include "os/fd.h"
#include "tests/support/sweeper.h"

namespace stint::test {
namespace {

class BystanderSweep : public ::testing::TestWithParam<const char*> {};

// EVIDENCE-OF: G7
TEST_P(BystanderSweep, NobodyElseIsHarmedWhateverIsStruck) {
  if (find_program("strace").empty()) GTEST_SKIP() << "strace is not installed";
  if (::geteuid() != 0) GTEST_SKIP() << "to choose the numbers of bystanders needs root";
  const TempDir dir;
  const std::string fifo = dir.file("alive");
  const std::string report = dir.file("report");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const os::Fd reader(::open(fifo.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  SweepPlan plan{.command = {.argv = {SANDBOX_PLAYER, "confine",      "--no-cgroup", GetParam(),
                                      "--leave",      "--report",     report,        "--",
                                      STINT_BINARY,   "run",          "r",           "--ttl",
                                      "2s",           "--grace",      "100ms",       "-q",
                                      "--",           SANDBOX_PLAYER, "work",        fifo,
                                      "session",      "detached",     "ends"},
                             .env = {{"XDG_STATE_HOME", dir.file("state")}}},
                 .from = ""};
  plan.syscalls = {"kill", "pidfd_send_signal", "pidfd_open", "waitid", "wait4", "readlink"};
  plan.blows = {Blow::Kill};  // stopped watchers: tree_test.cc
  const bool full = std::getenv("STINT_SWEEP") != nullptr;
  plan.most_points = full ? 0 : 12;
  plan.prepare = [&] {
    std::filesystem::remove_all(dir.file("state"));
    std::filesystem::remove(report);
  };
  int told = 0;
  plan.check = [&](const Strike&) -> std::string {
    int code = 0;
    int living = 0;
    int of = 0;
    const std::string text = read_text(report);
    // Without a report it was the player that was struck.
    if (std::sscanf(text.c_str(), "exit %d, bystanders %d of %d", &code, &living, &of) != 3)
      return "";
    ++told;
    return living == of ? "" : text;
  };
  const auto swept = sweep(plan);
  ASSERT_TRUE(swept) << swept.error().message;
  std::cout << swept->text();
  EXPECT_TRUE(swept->failures.empty()) << swept->failures.front();
  EXPECT_GT(told, 0);
}

INSTANTIATE_TEST_SUITE_P(Each, BystanderSweep, ::testing::Values("--foreign-proc", "--same-number"),
                         [](const auto& one) {
                           return std::string(one.param) == "--same-number" ? "SameNumber"
                                                                            : "Foreign";
                         });

}  // namespace
}  // namespace stint::test
