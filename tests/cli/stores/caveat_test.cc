// What a store can lose is said to whoever asks to be told more.
#include <gtest/gtest.h>

#include "tests/cli/stint.h"
#include "tests/support/servers.h"

namespace stint::test {
namespace {

TEST(RunVerbose, SaysWhatTheStoreCanLose) {
  if (const std::string missing = RedisServer::missing(); !missing.empty()) GTEST_SKIP() << missing;
  const Stint stint;
  for (const bool durable : {false, true}) {
    RedisServer server({.appendfsync = durable ? "always" : "everysec", .appendonly = true});
    ASSERT_TRUE(server.start());
    const auto run = [&](const char* how) {
      return stint({"--store", server.url(), "run", "r", how, "--", "true"});
    };
    const Finished told = run("-v");
    EXPECT_EQ(told.exit_code, 0) << told.err;
    const bool said = told.err.find("may lose an acknowledged grant") != std::string::npos;
    EXPECT_EQ(said, !durable) << told.err;
    EXPECT_EQ(run("-q").err, "");
  }
}

// Its own disk keeps everything; another that takes over may not have it.
TEST(RunVerbose, SaysWhatAFailOverCanLose) {
  if (const std::string missing = RedisServer::missing(); !missing.empty()) GTEST_SKIP() << missing;
  const Stint stint;
  RedisServer server;
  ASSERT_TRUE(server.start());
  RedisServer replica({.more = {"--replicaof", "127.0.0.1", std::to_string(server.port())}});
  ASSERT_TRUE(replica.start());
  Finished told;
  EXPECT_TRUE(wait_until([&] {
    told = stint({"--store", server.url(), "run", "r", "-v", "--", "true"});
    return told.err.find("a fail-over to a replica loses") != std::string::npos;
  })) << told.err;
}

}  // namespace
}  // namespace stint::test
