#include "os/birthplace.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/ended.h"

namespace stint::os {
namespace {

TEST(Birthplace, IsHereAndInNoChild) {
  const Birthplace born;
  EXPECT_TRUE(born.here());
  EXPECT_EQ(born.process(), ::getpid());
  const pid_t child = ::fork();
  if (child == 0) ::_exit(born.here() ? 1 : 0);
  EXPECT_EQ(end_of(child), End::with_code(0));
  EXPECT_TRUE(born.here());
}

// Made by hand, so that fork's own handlers do not run.
TEST(Birthplace, IsNotInAChildThatIsNotCounted) {
  const Birthplace born;
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) ::_exit(born.here() ? 1 : 0);
  EXPECT_EQ(end_of(child), End::with_code(0));
}

TEST(Birthplace, IsWhereAChildMakesItsOwn) {
  const Birthplace born;
  const pid_t child = ::fork();
  if (child == 0) {
    const Birthplace own;
    ::_exit(own.here() && !born.here() ? 0 : 1);
  }
  EXPECT_EQ(end_of(child), End::with_code(0));
}

}  // namespace
}  // namespace stint::os
