#include "server/in_hand.h"

#include <gtest/gtest.h>

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
    const InHand::Stay stay = lists.enter(claim_of('a'));
    const InHand::Stay other = lists.enter(claim_of('b'));
    second = std::thread([&] {
      const InHand::Stay again = lists.enter(claim_of('a'));
      note("the second is in");
    });
    note("the first leaves");
  }
  second.join();
  EXPECT_EQ(order, (std::vector<std::string>{"the first leaves", "the second is in"}));
  const InHand::Stay free = lists.enter(claim_of('a'));
}

}  // namespace
}  // namespace stint::server
