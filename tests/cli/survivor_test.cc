// What cannot be killed: the lease is not given back while it lives.
#include <gtest/gtest.h>
#include <signal.h>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

// As where the process is another user's and no cgroup can be had. (EEXIST: what the other
// directories say anyway.) EVIDENCE-OF: G7
TEST(ASurvivor, KeepsTheLeaseAndIsNamed) {
  if (find_program("strace").empty()) GTEST_SKIP() << "strace is not installed";
  const Stint stint;
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);  // makes the directories
  const std::string pid_file = stint.dir().file("pid");
  Command command = stint.command(
      {"run", "r", "--ttl", "1h", "--grace", "100ms", "--", "sh", "-c",
       cat("trap '' TERM HUP INT; setsid sh -c 'echo $$ >", pid_file, "; exec sleep 60' & ",
           "until test -s ", pid_file, "; do sleep 0.05; done")});
  const std::vector<std::string> before = {"strace", "-f",
                                           "-o",     stint.dir().file("trace"),
                                           "-e",     "trace=pidfd_send_signal,kill,mkdir,mkdirat",
                                           "-e",     "inject=pidfd_send_signal,kill:error=EPERM",
                                           "-e",     "inject=mkdir,mkdirat:error=EEXIST",
                                           "--"};
  command.argv.insert(command.argv.begin(), before.begin(), before.end());
  Child run_it(command);
  ASSERT_TRUE(wait_until(
      [&] { return run_it.err().find("the lease is not released") != std::string::npos; },
      Millis(60'000)))
      << run_it.err();
  const auto pid = parse_digits(trim(read_text(pid_file)));
  ASSERT_TRUE(pid);
  EXPECT_NE(run_it.err().find(cat(*pid, " (sleep")), std::string::npos) << run_it.err();
  EXPECT_TRUE(alive(static_cast<pid_t>(*pid)));
  EXPECT_TRUE(stint.held("r"));
  ::kill(static_cast<pid_t>(*pid), SIGKILL);
  EXPECT_TRUE(run_it.wait(Millis(20'000)));
  EXPECT_TRUE(stint.held("r")) << "it runs out by itself";
}

}  // namespace
}  // namespace stint::test
