#include "server/readiness.h"

#include <gtest/gtest.h>

namespace stint::server {
namespace {

MonoTime ready_at(int ms) { return MonoTime{} + Millis(ms); }

TEST(Readiness, OneLooksForAllWhoAskMeanwhile) {
  Readiness store;
  std::vector<bool> told;
  const auto tell = [&](bool ready) { told.push_back(ready); };
  EXPECT_TRUE(store.ask(tell, ready_at(0)));
  EXPECT_FALSE(store.ask(tell, ready_at(1)));
  EXPECT_FALSE(store.ask(tell, ready_at(5000)));
  EXPECT_TRUE(told.empty());
  store.learned(true, ready_at(5001));
  EXPECT_EQ(told, (std::vector<bool>{true, true, true}));
}

TEST(Readiness, AnAnswerIsKeptForASecond) {
  Readiness store;
  std::vector<bool> told;
  const auto tell = [&](bool ready) { told.push_back(ready); };
  EXPECT_TRUE(store.ask(tell, ready_at(0)));
  store.learned(false, ready_at(10));
  EXPECT_FALSE(store.ask(tell, ready_at(1009)));
  EXPECT_EQ(told, (std::vector<bool>{false, false}));
  EXPECT_TRUE(store.ask(tell, ready_at(1010)));
  store.learned(true, ready_at(1011));
  EXPECT_EQ(told, (std::vector<bool>{false, false, true}));
}

}  // namespace
}  // namespace stint::server
