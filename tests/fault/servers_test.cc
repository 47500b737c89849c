// The servers that the fault tests are run against: each starts, answers, can be frozen, and comes
// back after kill -9 with what it had acknowledged.
#include "tests/support/servers.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/loopback.h"

namespace stint::test {
namespace {

#define SKIP_IF_MISSING(type) \
  if (const std::string why = type::missing(); !why.empty()) GTEST_SKIP() << why

constexpr Millis kProbe(200);

void freeze_and_thaw(Server& server) {
  server.freeze();
  EXPECT_FALSE(server.answers(kProbe));
  server.thaw();
  EXPECT_TRUE(wait_until([&] { return server.answers(kProbe); }));
}

std::string redis_say(const RedisServer& redis, const std::string& line, std::size_t enough) {
  return ask(redis.port(), line + "\r\n", enough, Millis(5'000)).bytes;
}

TEST(Servers, RedisKeepsWhatItAcknowledgedOverKill9) {
  SKIP_IF_MISSING(RedisServer);
  RedisServer redis;
  const auto started = redis.start();
  ASSERT_TRUE(started) << started.error().message;
  freeze_and_thaw(redis);
  EXPECT_EQ(redis_say(redis, "SET key value", 5), "+OK\r\n");
  redis.kill9();
  EXPECT_FALSE(redis.running());
  EXPECT_FALSE(redis.answers(kProbe));
  const auto again = redis.start();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(redis_say(redis, "GET key", 11), "$5\r\nvalue\r\n");
}

TEST(Servers, RedisTakesOptions) {
  SKIP_IF_MISSING(RedisServer);
  RedisServer redis(
      {.appendfsync = "everysec", .appendonly = true, .more = {"--maxmemory", "100mb"}});
  ASSERT_TRUE(redis.start());
  EXPECT_NE(redis_say(redis, "CONFIG GET maxmemory", 34).find("104857600"), std::string::npos);
  redis.stop();
  EXPECT_FALSE(redis.running());
}

std::string psql(const PostgresServer& postgres, const std::string& sql) {
  const Finished done =
      run({.argv = {PostgresServer::program("psql"), "-XAtq", "-d", postgres.url(), "-c", sql}});
  return done.exit_code == 0 ? done.out : cat("failed: ", done.err);
}

TEST(Servers, PostgresKeepsWhatItAcknowledgedOverKill9) {
  SKIP_IF_MISSING(PostgresServer);
  PostgresServer postgres({"log_min_messages=warning"});
  const auto started = postgres.start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(psql(postgres, "create table t(x int); insert into t values (7)"), "");
  freeze_and_thaw(postgres);
  const auto again = postgres.restart();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(psql(postgres, "select x from t"), "7\n");
}

TEST(Servers, EtcdNodeComesBackAfterKill9) {
  SKIP_IF_MISSING(EtcdCluster);
  EtcdCluster etcd;
  const auto started = etcd.start();
  ASSERT_TRUE(started) << started.error().message;
  freeze_and_thaw(etcd.node(0));
  const auto again = etcd.node(0).restart();
  ASSERT_TRUE(again) << again.error().message;
}

TEST(Servers, EtcdOfThreeGoesOnWithoutOne) {
  SKIP_IF_MISSING(EtcdCluster);
  EtcdCluster etcd(3);
  const auto started = etcd.start();
  ASSERT_TRUE(started) << started.error().message;
  etcd.node(0).kill9();
  EXPECT_TRUE(
      wait_until([&] { return etcd.node(1).answers(kProbe) && etcd.node(2).answers(kProbe); },
                 Millis(20'000)));
  const auto back = etcd.node(0).start();
  EXPECT_TRUE(back) << back.error().message;
}

}  // namespace
}  // namespace stint::test
