#include "store/redis/rows.h"

#include <gtest/gtest.h>

namespace stint::store::redis {
namespace {

Reply bulk(std::string text) { return {.kind = Reply::Kind::Bulk, .text = std::move(text)}; }

TEST(RedisNow, FollowsTheServersClockAndBridgesAStepBack) {
  const Now plain = read_now(bulk("7 9 5000000 0"), bulk("6"), bulk("5")).value();
  EXPECT_EQ(plain.revision, 7U);
  EXPECT_EQ(plain.now_us, 6'000'005);
  const Now ahead = read_now(bulk("7 9 5000000 100"), bulk("6"), bulk("5")).value();
  EXPECT_EQ(ahead.now_us, 6'000'105);
  EXPECT_EQ(ahead.raw_us, 6'000'005) << "what people are shown is the server's own clock";
  const Now back = read_now(bulk("7 9 5000000 100"), bulk("2"), bulk("0")).value();
  EXPECT_EQ(back.now_us, 5'000'100) << "never before the last write";
}

TEST(RedisNow, DamagedIsAnError) {
  for (const char* text : {"", "1 2 3", "1 2 3 4 5", "1 2 x 4", "-1 2 3 4", "1  3 4"}) {
    EXPECT_FALSE(read_now(bulk(text), bulk("6"), bulk("5"))) << text;
  }
  EXPECT_FALSE(read_now(Reply{}, bulk("6"), bulk("5")));
  EXPECT_FALSE(read_now(bulk("1 2 3 4"), bulk("x"), bulk("5")));
  EXPECT_FALSE(read_now(bulk("1 2 3 4"), bulk("9007199254740992"), bulk("5")));
}

TEST(RedisRecord, ShowsValueVersionAndTimer) {
  Now now;
  now.now_us = 10'000;
  const Entry plain = read_entry("k", bulk("3 0 0 a b "), now).value();
  EXPECT_EQ(plain.value, "a b ");
  EXPECT_EQ(plain.version, 3U);
  EXPECT_EQ(plain.timer.state, TimerState::None);
  const Entry running = read_entry("k", bulk("3 10001 5 "), now).value();
  EXPECT_EQ(running.timer.state, TimerState::Running);
  EXPECT_EQ(running.timer.remaining, Millis(1)) << "rounded up";
  const Entry fired = read_entry("k", bulk("3 10000 5 "), now).value();
  EXPECT_EQ(fired.timer.state, TimerState::Fired);
  EXPECT_LE(fired.timer.remaining->count(), 0);
  const Entry far = read_entry("k", bulk("3 99999999 5 "), now).value();
  EXPECT_EQ(far.timer.remaining, Millis(5)) << "never more than its length";
  EXPECT_FALSE(read_entry("k", Reply{}, now).value().present());
}

TEST(RedisRecord, DamagedIsAnError) {
  for (const char* text :
       {"", "3 0 0", "0 0 0 v", "x 0 0 v", "3 -1 0 v", "3 0 99999999999999999 v"}) {
    EXPECT_FALSE(read_entry("k", bulk(text), {})) << text;
  }
  EXPECT_FALSE(read_entry("k", {.kind = Reply::Kind::Integer, .text = {}, .number = 3}, {}));
}

}  // namespace
}  // namespace stint::store::redis
