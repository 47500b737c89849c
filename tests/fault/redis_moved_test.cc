// A fail-over under open connections: the name leads to the new master, the connections still to
// the former one, which follows the new one now and hangs up on nobody.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/redis_client.h"

namespace stint::test {
namespace {

using store::RedisStore;

class RedisMoved : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
    for (RedisServer* server : {&first_, &second_}) {
      const auto started = server->start();
      ASSERT_TRUE(started) << started.error().message;
    }
    follow(second_, first_);
    lead_to("first");
  }

  RedisOptions options(const std::string& name) const {
    return {.appendfsync = "always",
            .appendonly = true,
            .more = {"--unixsocket", dir_.file(name), "--repl-diskless-sync-delay", "0"}};
  }
  static void follow(const RedisServer& one, const RedisServer& master) {
    redis_cli(one.port(), {"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
    ASSERT_TRUE(wait_until([&] {
      return redis_cli(one.port(), {"INFO", "replication"}).find("master_link_status:up") !=
             std::string::npos;
    }));
  }
  void lead_to(const std::string& name) const {
    ::unlink(dir_.file("name").c_str());
    ASSERT_EQ(::symlink(dir_.file(name).c_str(), dir_.file("name").c_str()), 0);
  }
  // With all that the first had, "k" last.
  void fail_over() const {
    ASSERT_TRUE(wait_until([&] {
      return redis_cli(second_.port(), {"HGET", "{stint}:records", ":k"}).find(" 1") !=
             std::string::npos;
    }));
    redis_cli(second_.port(), {"REPLICAOF", "NO", "ONE"});
    lead_to("second");
    follow(first_, second_);
  }
  std::unique_ptr<RedisStore> open() const {
    store::OpenRequest request;
    request.timeout = Millis(5'000);
    request.address.scheme = "redis+unix";
    request.address.path = dir_.file("name");
    return open_redis(request);
  }

  TempDir dir_;
  RedisServer first_{options("first")};
  RedisServer second_{options("second")};
};

TEST_F(RedisMoved, ACommitGoesToTheNewMaster) {
  const auto store = open();
  ASSERT_NE(store, nullptr);
  ASSERT_NE(redis_put(*store, "k", "1"), 0U);
  fail_over();
  EXPECT_NE(redis_put(*store, "k", "2"), 0U) << "it stayed with the former one";
  EXPECT_EQ(redis_get(*store, "k"), "2");
}

TEST_F(RedisMoved, WhatTheFormerMasterShowsIsNotBelieved) {
  const auto store = open();
  const auto other = open();
  const auto lister = open();
  ASSERT_TRUE(store != nullptr && other != nullptr && lister != nullptr);
  ASSERT_NE(redis_put(*store, "k", "1"), 0U);
  ASSERT_EQ(redis_get(*other, "k"), "1");
  ASSERT_EQ(redis_get(*lister, "k"), "1");
  fail_over();
  ASSERT_NE(redis_put(*store, "k", "2"), 0U);
  // It lags for ever, in this record.
  ASSERT_TRUE(wait_until([&] {
    return redis_cli(first_.port(), {"HGET", "{stint}:records", ":k"}).find(" 2") !=
           std::string::npos;
  }));
  redis_cli(first_.port(), {"CONFIG", "SET", "replica-read-only", "no"});
  redis_cli(first_.port(), {"HSET", "{stint}:records", ":k", "1 0 0 1"});
  const auto listed = lister->scan({.prefix = "k", .after = "", .limit = 10, .backwards = false});
  ASSERT_TRUE(listed && listed->entries.size() == 1U);
  EXPECT_EQ(listed->entries.front().value, "2");
  EXPECT_EQ(redis_get(*other, "k"), "2");
}

TEST_F(RedisMoved, WhereTheNameStaysTheReplicaIsNamed) {
  const auto store = open();
  ASSERT_NE(store, nullptr);
  ASSERT_NE(redis_put(*store, "k", "1"), 0U);
  fail_over();
  lead_to("first");
  const auto answer = redis_commit(*store, redis_set("k", "2"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Unavailable);
  EXPECT_NE(answer.error().message.find("read-only replica of"), std::string::npos)
      << answer.error().message;
}

}  // namespace
}  // namespace stint::test
