#include "server/in_hand.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace stint::server {
namespace {

Claim claim_of(char digit) { return *Claim::parse(std::string(32, digit)); }

TEST(InHand, OneClaimIsOneAtATimeAndAnotherIsNotHeldUp) {
  InHand lists;
  Mutex mutex;
  std::vector<std::string> order;
  const auto note = [&](const char* what) {
    const MutexLock lock(mutex);
    order.emplace_back(what);
  };
  std::thread second;
  {
    const auto stay = lists.enter(claim_of('a'));
    const auto other = lists.enter(claim_of('b'));
    EXPECT_TRUE(stay && other);
    second = std::thread([&] {
      const auto again = lists.enter(claim_of('a'));
      EXPECT_TRUE(again);
      note("the second is in");
    });
    note("the first leaves");
  }
  second.join();
  EXPECT_EQ(order, (std::vector<std::string>{"the first leaves", "the second is in"}));
}

// The threads that would wait are needed for others.
TEST(InHand, SoManyWaitForOneClaimAndNoMore) {
  InHand lists;
  std::vector<std::thread> waiting;
  std::atomic<int> entered = 0;
  std::atomic<int> turned_away = 0;
  {
    const auto first = lists.enter(claim_of('a'));
    ASSERT_TRUE(first);
    // One more than may wait: of those who are turned away there is one.
    for (std::size_t i = 0; i < InHand::kMostOfOne; ++i) {
      waiting.emplace_back([&] {
        const auto stay = lists.enter(claim_of('a'));
        ++(stay ? entered : turned_away);
      });
    }
    while (turned_away == 0) std::this_thread::yield();
    EXPECT_EQ(entered, 0);
  }
  for (std::thread& one : waiting) one.join();
  EXPECT_EQ(entered, static_cast<int>(InHand::kMostOfOne) - 1);
  EXPECT_TRUE(lists.enter(claim_of('a')));
}

}  // namespace
}  // namespace stint::server
