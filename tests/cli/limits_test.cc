// A process that may have few descriptors or no thread: a clear error and a clean end, never work
// that could not be stopped.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;

// The program under `ulimit OPTION VALUE`.
Command limited(const Stint& stint, const std::string& limit, std::vector<std::string> words) {
  Command command = stint.command(std::move(words));
  const std::vector<std::string> before = {"sh", "-c", cat("ulimit ", limit, " && exec \"$@\""),
                                           "sh"};
  command.argv.insert(command.argv.begin(), before.begin(), before.end());
  return command;
}

// With as many it is known to work.
constexpr int kEnough = 64;

void expect_clear(const Finished& refused, int descriptors) {
  // So few, with those that were inherited, that the program itself could not be loaded.
  if (refused.exit_code == 127 &&
      refused.err.find("loading shared libraries") != std::string::npos) {
    return;
  }
  EXPECT_EQ(refused.signal, 0) << descriptors;
  EXPECT_TRUE(refused.exit_code == 1 || refused.exit_code == 69 || refused.exit_code == 126)
      << descriptors << ": " << refused.exit_code.value_or(-1) << " " << refused.err;
  EXPECT_EQ(count_lines(refused.err), 1) << descriptors << ": " << refused.err;
  EXPECT_EQ(refused.err.find("bug"), std::string::npos) << refused.err;
}

// The least number with which a run starts its work.
int least_descriptors(const Stint& stint) {
  const std::string ran = stint.dir().file("ran");
  for (int n = 4; n < kEnough; ++n) {
    const Finished tried = run(limited(stint, cat("-n ", n), {"run", "r", "--", "touch", ran}));
    if (tried.exit_code == 0) return n;
    expect_clear(tried, n);
    EXPECT_FALSE(std::filesystem::exists(ran)) << n;
    if (std::filesystem::exists(stint.database())) {
      EXPECT_FALSE(stint.held("r")) << "not given back with " << n;
    }
  }
  return kEnough;
}

TEST(FewDescriptors, AreAClearErrorAndNothingIsStarted) {
  const Stint stint;
  const int least = least_descriptors(stint);
  EXPECT_LT(least, kEnough);
  EXPECT_EQ(read_text(stint.dir().file("ran")), "");
  const Finished said = run(limited(stint, cat("-n ", least - 1), {"run", "r", "--", "true"}));
  EXPECT_NE(said.err.find("out of file descriptors"), std::string::npos) << said.err;
  EXPECT_NE(said.err.find("ulimit -n"), std::string::npos) << said.err;
}

// EVIDENCE-OF: G7
TEST(FewDescriptors, AreEnoughToStopWhatWasStarted) {
  const Stint stint;
  const int least = least_descriptors(stint);
  const std::string pid_file = stint.dir().file("pid");
  Child holder(limited(stint, cat("-n ", least),
                       {"run", "r", "--ttl", "20s", "--", "sh", "-c",
                        cat("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >", pid_file,
                            "; while :; do sleep 1; done' & while :; do sleep 1; done")}));
  const auto pid = [&] { return parse_digits(trim(read_text(pid_file))); };
  ASSERT_TRUE(wait_until([&] { return pid().has_value(); })) << holder.err();
  const std::string token = stint.lease("r", "token");
  ASSERT_EQ(stint({"revoke", "r", "--token", token, "--why", "test"}).exit_code, 0);
  // At once, by the supervisor: the guardian would only come near the end of the ttl.
  const auto exit = holder.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << holder.err();
  EXPECT_FALSE(alive(static_cast<pid_t>(*pid())));
}

TEST(FewDescriptors, AWaitIsAClearErrorToo) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "1h"}).exit_code, 0);
  int waited = 0;
  for (int n = 4; n < kEnough && waited < 3; ++n) {
    const Finished tried = run(
        limited(stint, cat("-n ", n), {"run", "r", "-q", "--on-held", "wait=50ms", "--", "true"}));
    if (tried.exit_code == 0) {
      ++waited;
    } else {
      expect_clear(tried, n);
    }
  }
  EXPECT_EQ(waited, 3);
}

// A stack that does not fit into memory: no thread can be made.
constexpr const char* kNoThreads = "-s 200000000000";

TEST(NoThread, TheWorkIsStoppedAtTheDeadlineAndItIsSaid) {
  const Stint stint;
  if (run(limited(stint, kNoThreads, {"version"})).exit_code != 0) {
    GTEST_SKIP() << "the limit of the stack cannot be set here";
  }
  const Finished done =
      run(limited(stint, kNoThreads, {"run", "r", "--ttl", "1s", "--", "sleep", "60"}));
  EXPECT_EQ(done.exit_code, 75) << done.err;
  EXPECT_EQ(count_lines(done.err, "no thread to renew the lease"), 1) << done.err;
  EXPECT_LT(done.took, milliseconds(20'000));
}

TEST(NoThread, WhereOneIsNeededAtOnceNothingIsStarted) {
  const Stint stint;
  if (run(limited(stint, kNoThreads, {"version"})).exit_code != 0) {
    GTEST_SKIP() << "the limit of the stack cannot be set here";
  }
  const std::string ran = stint.dir().file("ran");
  const Finished done = run(limited(
      stint, kNoThreads,
      {"run", "r", "--progress-timeout", "10s", "--progress-on", "output", "--", "touch", ran}));
  EXPECT_EQ(done.exit_code, 1) << done.err;
  EXPECT_EQ(count_lines(done.err), 1) << done.err;
  EXPECT_FALSE(std::filesystem::exists(ran));
  EXPECT_FALSE(stint.held("r"));
}

}  // namespace
}  // namespace stint::test
