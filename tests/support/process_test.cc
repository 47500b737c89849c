#include "tests/support/process.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace stint::test {
namespace {

TEST(Process, RunsToTheEndWithInputEnvironmentAndFolder) {
  const TempDir folder;
  const Finished done =
      run({.argv = {"sh", "-c", "cat; echo $GREETING; pwd; echo oops >&2; exit 3"},
           .env = {{"GREETING", "hello"}},
           .stdin_text = "input\n",
           .cwd = folder.path()});
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_EQ(done.out, "input\nhello\n" + folder.path() + "\n");
  EXPECT_EQ(done.err, "oops\n");
}

TEST(Process, TakesAVariableAway) {
  const Finished done =
      run({.argv = {"sh", "-c", "echo ${HOME-none}"}, .env = {{"HOME", std::nullopt}}});
  EXPECT_EQ(done.out, "none\n");
}

TEST(Process, KillsTheWholeGroupAtTheDeadline) {
  const Finished done = run({.argv = {"sh", "-c", "sleep 600 & echo $!; wait"}}, Millis(200));
  EXPECT_TRUE(done.timed_out);
  EXPECT_EQ(done.signal, SIGKILL);
  const auto grandchild = static_cast<pid_t>(std::stol(done.out));
  EXPECT_TRUE(wait_until([&] { return !alive(grandchild); }));
}

TEST(Process, SaysWhenThereIsNoSuchProgram) {
  const Finished done = run({.argv = {"no-such-program-here"}});
  EXPECT_EQ(done.exit_code, 127);
  EXPECT_NE(done.err.find("not found"), std::string::npos);
}

TEST(Process, FindsDescendantsAndTheirStates) {
  Child child({.argv = {"sh", "-c", "sh -c 'sleep 600; true' & wait"}});
  ASSERT_TRUE(wait_until([&] { return descendants(child.pid()).size() == 2; }));
  const auto found = descendants(child.pid());
  child.signal_group(SIGSTOP);
  EXPECT_TRUE(wait_until([&] { return state_of(found.back()) == 'T'; }));
  child.signal_group(SIGKILL);
  const auto exit = child.wait(Millis(5'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, SIGKILL);
  EXPECT_TRUE(wait_until([&] { return !alive(found.front()) && !alive(found.back()); }));
}

TEST(Process, ShowsOutputWhileItRuns) {
  Child child({.argv = {"sh", "-c", "echo ready; exec sleep 600"}});
  EXPECT_TRUE(wait_until([&] { return child.out() == "ready\n"; }));
  EXPECT_TRUE(child.running());
}

TEST(WaitUntil, GivesUpAtTheDeadline) {
  EXPECT_FALSE(wait_until([] { return false; }, Millis(30)));
  EXPECT_TRUE(wait_until([] { return true; }, Millis(0)));
}

}  // namespace
}  // namespace stint::test
