#include "store/redis/faults.h"

#include <gtest/gtest.h>

namespace stint::store::redis {
namespace {

Reply error(std::string text) { return {.kind = Reply::Kind::Error, .text = std::move(text)}; }

TEST(RedisErrorLine, OfAClusterNamesTheNode) {
  const Error moved = fault_of(error("MOVED 3999 10.0.0.7:6381"), "h:1");
  EXPECT_EQ(moved.code, Code::Unavailable);
  EXPECT_NE(moved.message.find("10.0.0.7:6381"), std::string::npos) << moved.message;
  EXPECT_TRUE(surely_not_done(error("MOVED 3999 10.0.0.7:6381")));
}

TEST(RedisErrorLine, OfAPermissionIsADenial) {
  for (const char* text :
       {"NOAUTH Authentication required.", "WRONGPASS invalid username-password pair",
        "NOPERM this user has no permissions to run the 'hset' command",
        "ERR The user executing the script can't run this command or subcommand"}) {
    EXPECT_EQ(fault_of(error(text), "h").code, Code::Denied) << text;
  }
}

// The rest of the line is the whole script.
TEST(RedisErrorLine, OfAMissingCommandNamesItAndNoMore) {
  for (const char* text : {"ERR unknown command 'EVAL', with args beginning with: 'local call",
                           "ERR unknown command `EVAL`, with args beginning with: `local call"}) {
    const Error fault = fault_of(error(text), "h");
    EXPECT_EQ(fault.message, "the Redis at h has no EVAL, which stint needs (rename-command?)");
    EXPECT_TRUE(surely_not_done(error(text)));
  }
  EXPECT_EQ(fault_of(error("ERR unknown command "), "h").code, Code::Unavailable);
}

TEST(RedisErrorLine, ThatIsNotKnownSettlesNothing) {
  EXPECT_TRUE(surely_not_done(error("OOM command not allowed")));
  EXPECT_TRUE(surely_not_done(error("READONLY You can't write against a read only replica.")));
  EXPECT_FALSE(surely_not_done(error("ERR something new")));
  EXPECT_FALSE(surely_not_done(error("OOMPH")));
}

TEST(RedisErrorLine, KeepsTheServersWordsHarmless) {
  const Error fault = fault_of(error("ERR \x1b[31m" + std::string(5000, 'x')), "h");
  EXPECT_LT(fault.message.size(), 400U);
  EXPECT_EQ(fault.message.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace stint::store::redis
