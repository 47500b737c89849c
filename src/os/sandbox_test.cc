#include "os/sandbox.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stint::os {
namespace {

TEST(Sandbox, HereProcIsOurs) {
  EXPECT_EQ(proc_at_a_glance(), Proc::Ours);
  EXPECT_EQ(look_at_proc(), Proc::Ours);
}

// A child in a pid namespace of its own that still sees our /proc.
TEST(Sandbox, InANewPidNamespaceTheOldProcIsForeign) {
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(2);
    const pid_t inner = ::fork();
    if (inner == 0) ::_exit(look_at_proc() == Proc::Foreign ? 0 : 1);
    int status = 0;
    ::waitpid(inner, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(outer, &status, 0), outer);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "a pid namespace needs rights";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace stint::os
