#include "os/lock_holder.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace stint::os {
namespace {

TEST(LockHolder, TellsWhoShutsOthersOut) {
  std::string path = testing::TempDir() + "stint-lock-XXXXXX";
  const int fd = ::mkstemp(path.data());
  ASSERT_GE(fd, 0);
  EXPECT_FALSE(holds_write_lock(::getpid()));
  ASSERT_EQ(::flock(fd, LOCK_SH), 0);
  EXPECT_FALSE(holds_write_lock(::getpid())) << "readers are in nobody's way";
  ASSERT_EQ(::flock(fd, LOCK_EX), 0);
  EXPECT_TRUE(holds_write_lock(::getpid()));
  EXPECT_FALSE(holds_write_lock(1));
  ASSERT_EQ(::flock(fd, LOCK_UN), 0);
  EXPECT_FALSE(holds_write_lock(::getpid()));
  ::close(fd);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace stint::os
