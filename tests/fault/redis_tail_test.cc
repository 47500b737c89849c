// A real Redis that has lost something: a tail in the middle of a verb, its index; and one whose
// settings will lose something.
#include <gtest/gtest.h>

#include "os/clock.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "tests/conformance/meanwhile.h"
#include "tests/support/redis_client.h"

namespace stint::test {
namespace {

// Whatever was granted last may be gone: the floor that was read does not know of it.
// EVIDENCE-OF: G1
TEST(RedisTail, ThatMayBeLostBetweenTheLookAndTheGrantCounts) {
  if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
  RedisServer server({.appendfsync = "everysec", .appendonly = true, .more = {}});
  const auto started = server.start();
  ASSERT_TRUE(started) << started.error().message;
  const os::SystemClock clock;
  os::SystemRandom random;
  testing::Meanwhile store(open_redis(redis_request(server.port())));
  service::Ledger ledger(store, clock, 1000);
  service::LeaseService leases(
      store, ledger, service::begin_life(store, random, clock.wall(), nullptr, {}).value(), clock,
      random, nullptr);
  store.before_commit([&] { EXPECT_TRUE(server.restart()); });
  const auto answer = leases.acquire({.resource = ResourceName::parse("db").value(),
                                      .owner = Owner::parse("ann").value(),
                                      .claim = Claim::make(random),
                                      .terms = {Millis(60'000), {}, {}, {}},
                                      .note = "",
                                      .retake = std::nullopt,
                                      .count_refusal = false});
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  ASSERT_TRUE(std::holds_alternative<api::Granted>(*answer));
  EXPECT_GT(std::get<api::Granted>(*answer).lease.token.number(), 1ULL << 50U);
}

// By hand, or evicted: what a scan does not show would be left behind by `store copy`.
// EVIDENCE-OF: G1
TEST(RedisIndex, ThatIsGoneIsMadeAnewFromTheRecords) {
  if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
  RedisServer server;
  const auto started = server.start();
  ASSERT_TRUE(started) << started.error().message;
  const auto store = open_redis(redis_request(server.port()));
  for (int i = 0; i < 1200; ++i) ASSERT_NE(redis_put(*store, cat("k/", i), "v"), 0U);
  const auto count = [&](store::Store& in) {
    std::size_t found = 0;
    std::string after;
    while (true) {
      const auto page = in.scan({.prefix = "k/", .after = after, .limit = 500});
      if (!page || page->entries.empty()) return found;
      found += page->entries.size();
      after = page->entries.back().key;
    }
  };
  ASSERT_EQ(count(*store), 1200U);
  redis_cli(server.port(), {"ZREM", "{stint}:keys", "k/7"});
  EXPECT_EQ(count(*open_redis(redis_request(server.port()))), 1200U);
  redis_cli(server.port(), {"DEL", "{stint}:keys"});
  EXPECT_EQ(count(*open_redis(redis_request(server.port()))), 1200U);
}

TEST(RedisFindings, TellAnOperatorWhatToMind) {
  if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
  RedisServer server({.appendfsync = "no",
                      .appendonly = false,
                      .more = {"--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"}});
  const auto started = server.start();
  ASSERT_TRUE(started) << started.error().message;
  const auto store = open_redis(redis_request(server.port()));
  EXPECT_FALSE(store->capabilities().durable);
  EXPECT_NE(store->capabilities().may_lose.find("snapshot"), std::string::npos);
  const auto findings = store->examine().value();
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[1].level, store::Finding::Level::Fail);
  EXPECT_NE(findings[1].text.find("allkeys-lru"), std::string::npos);
  EXPECT_EQ(findings[2].check, "permissions");
  EXPECT_EQ(findings[2].level, store::Finding::Level::Warn) << "whoever reaches it may write it";
}

}  // namespace
}  // namespace stint::test
