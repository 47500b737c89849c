#include "store/redis/facts.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace stint::store::redis {
namespace {

using Config = std::vector<std::string>;

const std::string kMaster =
    "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:abc\r\nrole:master\r\n"
    "connected_slaves:0\r\nmaster_replid2:0000\r\nloading:0\r\naof_enabled:1\r\n"
    "maxmemory:0\r\nmaxmemory_policy:noeviction\r\n";
const Config kAlways = {"appendfsync", "always", "no-appendfsync-on-rewrite", "no"};

std::string with(std::string_view from, std::string_view to) {
  std::string out = kMaster;
  return out.replace(out.find(from), from.size(), to);
}

TEST(RedisFacts, OnlySyncsAlwaysWithoutReplicasKeepTheTail) {
  const RedisFacts good = read_facts(kMaster, kAlways).value();
  EXPECT_TRUE(good.durable());
  EXPECT_TRUE(good.keeps_tail());
  EXPECT_EQ(good.findings().size(), 1U) << "its version, and nothing wrong";
  for (const Config& config :
       {Config{}, Config{"appendfsync", "everysec"}, Config{"appendfsync", "no"},
        Config{"appendfsync", "always", "no-appendfsync-on-rewrite", "yes"}}) {
    const RedisFacts facts = read_facts(kMaster, config).value();
    EXPECT_FALSE(facts.durable());
    EXPECT_FALSE(facts.keeps_tail());
    EXPECT_FALSE(facts.may_lose().starts_with("nothing")) << facts.may_lose();
  }
  EXPECT_FALSE(read_facts(with("aof_enabled:1", "aof_enabled:0"), kAlways)->durable());
  const auto followed = read_facts(with("connected_slaves:0",
                                        "connected_slaves:2\r\nslave0:ip=a,state=online\r\n"
                                        "slave1:ip=b,state=wait_bgsave"),
                                   kAlways)
                            .value();
  EXPECT_TRUE(followed.durable());
  EXPECT_FALSE(followed.keeps_tail());
  EXPECT_EQ(followed.replicas, 2U);
  EXPECT_EQ(followed.online, 1U);
  EXPECT_FALSE(read_facts(with("replid2:0000", "replid2:00a0"), kAlways)->keeps_tail());
}

TEST(RedisFacts, WhatTheUserMayDoIsTold) {
  using Level = Finding::Level;
  const RedisFacts known = read_facts(kMaster, kAlways).value();
  const RedisFacts unknown = read_facts(kMaster, {}).value();
  EXPECT_EQ(known.rights({.user = "ann", .anybody = false}).level, Level::Ok);
  EXPECT_EQ(known.rights({.user = "", .anybody = true}).level, Level::Warn);
  const Finding half = unknown.rights({.user = "ann", .anybody = false});
  EXPECT_EQ(half.level, Level::Warn);
  EXPECT_NE(half.text.find("'ann' may do all that is needed, but not CONFIG GET"),
            std::string::npos)
      << half.text;
}

TEST(RedisFacts, RefusesWhatCannotCarryLeases) {
  EXPECT_TRUE(check_usable(read_facts(kMaster, {}).value(), "h"));
  for (const auto& [from, to, says] :
       {std::tuple{"redis_version:7.0.15", "redis_version:5.0.14", "too old"},
        {"redis_mode:standalone", "redis_mode:sentinel", "Sentinel"},
        {"role:master", "role:slave", "replica"},
        {"loading:0", "loading:1", "loading"}}) {
    const auto refused = check_usable(read_facts(with(from, to), {}).value(), "h");
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(says), std::string::npos) << refused.error().message;
  }
}

TEST(RedisFacts, OfAServerThatSaysNothingAreAnError) {
  for (const char* name : {"redis_version:7.0.15", "run_id:abc", "role:master"}) {
    EXPECT_FALSE(read_facts(with(name, ""), {})) << name;
  }
  EXPECT_FALSE(read_facts("", {}));
}

}  // namespace
}  // namespace stint::store::redis
