// The rules of one gate, without a network.
#include "guard/http/gate.h"

#include <gtest/gtest.h>

#include "tests/support/issuing_fences.h"

namespace stint::guard::http {
namespace {

core::Fence fence_at(std::uint64_t token) {
  return {.generation = test::generation_number(0),
          .resource = "r",
          .token = Token(token),
          .used = false,
          .key = "",
          .digest = ""};
}

MonoTime at(std::int64_t ms) { return MonoTime{Millis(1'000 + ms)}; }

core::Offer offer_of(std::uint64_t token) {
  core::Offer out;
  out.generation = test::generation_number(0);
  out.resource = "r";
  out.token = Token(token);
  return out;
}

// EVIDENCE-OF: G5
TEST(HttpGate, WhatWasOvertakenWhileItWaitedIsNotLetThrough) {
  const MonoTime start{Millis(1'000)};
  Gate gate(fence_at(1), fence_at(1), start, Millis(100));
  const MonoTime later = start + Millis(200);
  EXPECT_EQ(gate.way(Token(1), later), Way::Open);
  const auto id = gate.enter(Token(1), {});
  gate.learn(fence_at(2));
  EXPECT_EQ(gate.way(Token(2), later), Way::Wait);
  EXPECT_EQ(gate.way(Token(1), later), Way::Overtaken);
  gate.learn(fence_at(3));
  gate.learn(fence_at(2));  // an answer that was overtaken changes nothing
  gate.leave(id, true, later);
  EXPECT_EQ(gate.way(Token(2), later), Way::Overtaken);
  EXPECT_EQ(gate.way(Token(3), later), Way::Mark);
  gate.passed(Token(3));
  EXPECT_EQ(gate.way(Token(3), later), Way::Open);
}

TEST(HttpGate, WhatWasNotAnsweredCountsForTheDrainTime) {
  const MonoTime start{Millis(1'000)};
  Gate gate(std::nullopt, std::nullopt, start, Millis(100));
  gate.learn(fence_at(1));
  EXPECT_EQ(gate.way(Token(1), start), Way::Mark) << "nothing was ever let through here";
  const auto id = gate.enter(Token(1), {});
  gate.learn(fence_at(2));
  gate.leave(id, false, start);
  EXPECT_EQ(gate.way(Token(2), start + Millis(99)), Way::Wait);
  EXPECT_EQ(gate.next_change(start), start + Millis(100));
  EXPECT_EQ(gate.way(Token(2), start + Millis(100)), Way::Mark);
}

// Else a thousand resources whose last request was not answered keep every other one out.
// The store's word counts until a change is heard of, and no longer than kHearing: from when it was
// asked.
// EVIDENCE-OF: G5
TEST(HttpGate, TheFencesOwnTokenIsGoodAsLongAsItIsKnownToBeTheNewest) {
  const core::Offer offer = offer_of(7);
  Gate gate(fence_at(7), fence_at(7), at(0), Millis(100));
  EXPECT_EQ(gate.known(offer, at(0)), std::nullopt);
  gate.newest(Token(7), gate.hearing(), at(0));
  EXPECT_EQ(gate.known(offer, at(0)), core::Verdict::Admitted);
  EXPECT_EQ(gate.known(offer, at(kHearing.count() - 1)), core::Verdict::Admitted);
  EXPECT_EQ(gate.known(offer, at(kHearing.count())), std::nullopt);
  const auto before = gate.hearing();
  gate.changed();
  gate.newest(Token(7), before, at(5000));
  EXPECT_EQ(gate.known(offer, at(5000)), std::nullopt) << "asked before the change";
  gate.newest(Token(7), gate.hearing(), at(5000));
  EXPECT_EQ(gate.known(offer, at(5000)), core::Verdict::Admitted);
  EXPECT_EQ(gate.known(offer_of(6), at(5000)), core::Verdict::Stale) << "without asking";
}

TEST(HttpGate, AFenceThatAnOperatorMovesIsReadAnew) {
  core::Fence fence = fence_at(9);
  fence.resource = "other";
  const core::Offer offer = offer_of(3);
  Gate gate(fence, std::nullopt, at(0), Millis(0));
  EXPECT_EQ(gate.known(offer, at(0)), std::nullopt);
  gate.learn(fence_at(3));
  gate.newest(Token(3), gate.hearing(), at(0));
  EXPECT_EQ(gate.known(offer, at(0)), core::Verdict::Admitted);
}

TEST(HttpGate, IsIdleWhenTheTimeOfTheUnansweredIsOver) {
  const MonoTime start{Millis(1'000)};
  Gate gate(std::nullopt, std::nullopt, start, Millis(100));
  EXPECT_TRUE(gate.idle(start));
  const auto id = gate.enter(Token(1), {});
  EXPECT_FALSE(gate.idle(start + Millis(500)));
  gate.leave(id, false, start);
  EXPECT_FALSE(gate.idle(start + Millis(99)));
  EXPECT_TRUE(gate.idle(start + Millis(100)));
}

}  // namespace
}  // namespace stint::guard::http
