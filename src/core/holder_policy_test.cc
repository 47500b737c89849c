#include "core/holder_policy.h"

#include <gtest/gtest.h>

namespace stint::core {
namespace {

using Standing = HolderPolicy::Standing;

MonoTime at(std::int64_t ms) { return MonoTime(Millis(ms)); }

HoldSettings settings(int ttl) {
  const Millis length(ttl);
  return {.ttl = length, .grace = default_grace(length), .margin = default_margin(length)};
}

TEST(HoldDefaults, LeaveRoomForTheStopWithinTheTtl) {
  EXPECT_EQ(default_grace(Millis(90'000)), Millis(10'000));
  EXPECT_EQ(default_grace(Millis(6000)), Millis(1000));
  EXPECT_EQ(default_margin(Millis(90'000)), Millis(500));
  EXPECT_EQ(default_margin(Millis(1000)), Millis(100));
  for (const int ttl : {100, 500, 1000, 5000, 90'000, 3'600'000}) {
    EXPECT_TRUE(check_settings(settings(ttl))) << ttl;
  }
}

TEST(HoldSettings, AreRefusedWhenTheWorkCannotBeStoppedInTime) {
  const auto refused =
      check_settings({.ttl = Millis(1000), .grace = Millis(900), .margin = Millis(100)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Invalid);
  EXPECT_FALSE(check_settings({.ttl = Millis(1000), .grace = Millis(2000), .margin = Millis(0)}));
}

TEST(HolderHeartbeat, IsNoLongerThanAsked) {
  SeededRandom random(1);
  HoldSettings s = settings(90'000);
  EXPECT_GT(HolderPolicy(s, at(0), s.ttl, random).renew_at(), at(20'000));
  s.longest_beat = Millis(1000);
  for (int i = 0; i < 20; ++i) {
    EXPECT_LE(HolderPolicy(s, at(0), s.ttl, random).renew_at(), at(1100));
  }
}

// EVIDENCE-OF: G6
TEST(HolderDeadline, CountsFromBeforeTheSendingLessStopAndDrift) {
  SeededRandom random(1);
  const HoldSettings s{.ttl = Millis(90'000), .grace = Millis(10'000), .margin = Millis(500)};
  const HolderPolicy policy(s, at(1000), s.ttl, random);
  EXPECT_EQ(policy.deadline(), at(1000 + 90'000 - 10'000 - 500 - 91));
  EXPECT_EQ(policy.kill_at(), policy.deadline() + Millis(10'000));
  EXPECT_LT(policy.kill_at() + s.margin, at(1000) + s.ttl);
  EXPECT_EQ(policy.standing(policy.deadline() - Nanos(1)), Standing::Holding);
  EXPECT_EQ(policy.standing(policy.deadline()), Standing::Overdue);
}

// EVIDENCE-OF: G6
TEST(HolderDeadline, IsEarlierThanTheStoresExpiryForEveryTtl) {
  SeededRandom random(2);
  for (int ttl = 100; ttl < 200'000; ttl = ttl * 3 / 2) {
    const HolderPolicy policy(settings(ttl), at(0), Millis(ttl), random);
    // The store's clock may run fast by a thousandth.
    EXPECT_LT(policy.kill_at(), at(ttl) - Millis(ttl / 1000)) << ttl;
    EXPECT_LT(policy.renew_at(), policy.deadline()) << ttl;
    EXPECT_GE(policy.renew_at(), at(ttl / 3 - ttl / 30 - 1)) << ttl;
    EXPECT_LE(policy.renew_at(), at(ttl / 3 + ttl / 30 + 1)) << ttl;
  }
}

// The store ends the lease then, whatever was granted by a renewal just before: the work must have
// been stopped.   EVIDENCE-OF: G6
TEST(HolderDeadline, IsNeverPastMaxHoldCountedFromTheGrant) {
  SeededRandom random(12);
  HoldSettings s = settings(9000);
  s.max_hold = Millis(12'000);
  HolderPolicy policy(s, at(0), s.ttl, random);
  EXPECT_EQ(policy.deadline(), HolderPolicy(settings(9000), at(0), s.ttl, random).deadline());
  policy.renewed(at(3000), s.ttl, at(3000));
  policy.renewed(at(6000), s.ttl, at(6000));
  EXPECT_EQ(policy.deadline(), at(12'000) - s.grace - s.margin - Millis(12 + 1));
}

TEST(HolderRenewed, MovesTheDeadlineByItsOwnSending) {
  SeededRandom random(3);
  HolderPolicy policy(settings(9000), at(0), Millis(9000), random);
  const MonoTime before = policy.deadline();
  policy.renewed(at(3000), Millis(9000), at(3000));
  EXPECT_EQ(policy.deadline(), before + Millis(3000));
  EXPECT_EQ(policy.sure_since(), at(3000));
}

TEST(HolderRenewed, CountsWithTheTtlThatTheStoreGranted) {
  SeededRandom random(4);
  HolderPolicy policy(settings(9000), at(0), Millis(9000), random);
  policy.renewed(at(3000), Millis(20'000), at(3000));
  EXPECT_GT(policy.deadline(), at(3000 + 17'000));
}

TEST(HolderRenewed, NeverMovesBackForAnAnswerThatCameLate) {
  SeededRandom random(5);
  HolderPolicy policy(settings(9000), at(0), Millis(9000), random);
  policy.renewed(at(3000), Millis(9000), at(3000));
  const MonoTime deadline = policy.deadline();
  policy.renewed(at(2000), Millis(9000), at(3100));
  EXPECT_EQ(policy.deadline(), deadline);
}

// After a suspend the keeper may be answered before anybody has looked at the deadline.
TEST(HolderRenewed, DoesNotMoveADeadlineThatHasPassed) {
  SeededRandom random(10);
  HolderPolicy policy(settings(9000), at(0), Millis(9000), random);
  const MonoTime deadline = policy.deadline();
  policy.renewed(at(3000), Millis(9000), deadline);
  EXPECT_EQ(policy.deadline(), deadline);
  EXPECT_EQ(policy.standing(deadline), Standing::Overdue);
  EXPECT_GT(policy.renew_at(), deadline + Millis(2000)) << "it goes on beating, not faster";
  policy.renewed(at(3000), Millis(9000), deadline - Nanos(1));
  EXPECT_EQ(policy.deadline(), deadline + Millis(3000));
}

TEST(HolderUnknown, IsNeverLostAndIsTriedAgainSoon) {
  SeededRandom random(6);
  HolderPolicy policy(settings(9000), at(0), Millis(9000), random);
  const MonoTime deadline = policy.deadline();
  MonoTime now = at(3000);
  for (int i = 0; i < 50; ++i) {
    policy.unknown(now);
    EXPECT_TRUE(policy.unsure());
    EXPECT_EQ(policy.standing(now), Standing::Holding);
    EXPECT_GT(policy.renew_at(), now);
    EXPECT_LE(policy.renew_at(), now + Millis(9000 / 10) * 3 / 2);
  }
  EXPECT_EQ(policy.deadline(), deadline);
  policy.renewed(at(3100), Millis(9000), at(3100));
  EXPECT_FALSE(policy.unsure());
}

TEST(HolderUnknown, TriesTheFirstTimeWithinMilliseconds) {
  SeededRandom random(7);
  HolderPolicy policy(settings(90'000), at(0), Millis(90'000), random);
  policy.unknown(at(30'000));
  EXPECT_LE(policy.renew_at(), at(30'030));
}

TEST(HolderLost, IsFinalWhateverTheClockSays) {
  SeededRandom random(8);
  HolderPolicy policy(settings(9000), at(0), Millis(9000), random);
  EXPECT_FALSE(policy.lost_cause());
  policy.lost(Cause::Revoked);
  EXPECT_EQ(policy.standing(at(1)), Standing::Lost);
  policy.renewed(at(10), Millis(9000), at(10));
  EXPECT_EQ(policy.standing(at(11)), Standing::Lost);
  EXPECT_EQ(policy.lost_cause(), Cause::Revoked);
}

TEST(HolderHeartbeat, IsSpreadSoThatAFleetDoesNotBeatInStep) {
  SeededRandom random(9);
  std::vector<MonoTime> beats;
  for (int i = 0; i < 20; ++i)
    beats.push_back(HolderPolicy(settings(90'000), at(0), Millis(90'000), random).renew_at());
  std::sort(beats.begin(), beats.end());
  EXPECT_LT(beats.front(), beats.back());
}

// ---- The store's own time

// An answer that was asked for at `sent`, was here 10 ms later, and was given at `store` there.
Sighting sighting(std::int64_t sent, std::int64_t store) {
  return {.sent_at = at(sent), .answered_at = at(sent + 10), .store_time = Millis(store)};
}

struct StepCase {
  std::int64_t here;   // ms between the two sendings
  std::int64_t there;  // ms between the two times of the store
  std::int64_t step;   // zero: none is reported
};

// Reported from half a second beyond the time that both answers took, and a thousandth for drift.
// EVIDENCE-OF: G4
TEST(StoreClock, ReportsWhatNeitherLatencyNorDriftExplains) {
  const StepCase cases[] = {
      {30'000, 30'000, 0},
      {30'000, 30'500, 0},
      {30'000, 30'541, 1},  // 10 ms of latency, 500, and 30 for drift: beyond that
      {30'000, 29'470, 0},
      {30'000, 29'450, -1},
      {30'000, 30'000 + 3'600'000, 3'600'000},
      {30'000, 30'000 - 3'600'000, -3'600'000},
      {30'000, 0, -30'000},
      {0, 0, 0},
      {3'600'000, 3'603'000, 0},  // a clock that is slewed for an hour
      {3'600'000, 3'605'000, 1},
      {-3'600'000, -3'600'000, 0},  // nobody asks so, but nothing breaks
  };
  for (const StepCase& c : cases) {
    StoreClock clock;
    EXPECT_FALSE(clock.saw(sighting(5000, 7'000'000))) << "the first says nothing";
    const auto by = clock.saw(sighting(5000 + c.here, 7'000'000 + c.there));
    EXPECT_EQ(by.has_value(), c.step != 0) << c.here << ' ' << c.there;
    if (!by) continue;
    EXPECT_EQ(*by > Nanos(0), c.step > 0);
    if (std::abs(c.step) > 1) {
      EXPECT_LE(std::chrono::abs(*by - Millis(c.step)), Millis(10)) << c.here << ' ' << c.there;
    }
    EXPECT_FALSE(clock.saw(sighting(6000 + c.here, 7'001'000 + c.there))) << "once";
  }
}

// A slow answer explains more: the store may have read its clock first or last.
TEST(StoreClock, AllowsForTheTimeThatAnAnswerTook) {
  for (const std::int64_t within : {0, 4000}) {
    StoreClock clock;
    EXPECT_FALSE(clock.saw(sighting(0, 0)));
    EXPECT_FALSE(clock.saw(
        {.sent_at = at(1000), .answered_at = at(5000), .store_time = Millis(1000 + within)}));
    EXPECT_FALSE(clock.saw(sighting(6000, 6000)));
  }
}

HolderPolicy counted_policy(Random& random) {
  const HoldSettings s{.ttl = Millis(90'000), .grace = Millis(10'000), .margin = Millis(500)};
  HolderPolicy policy(s, at(1000), s.ttl, random);
  policy.saw(sighting(1000, 500'000));
  return policy;
}

// EVIDENCE-OF: G6
TEST(HolderDeadline, ComesNearerByWhatHasPassedAtTheStoreOnly) {
  SeededRandom random(7);
  HolderPolicy policy = counted_policy(random);
  const MonoTime counted = policy.deadline();
  policy.saw(sighting(21'000, 520'000));
  EXPECT_EQ(policy.deadline(), counted) << "the same time here and there";
  policy.saw(sighting(21'000, 520'020));
  EXPECT_EQ(policy.deadline(), counted) << "within drift and a tick";
  // Paused for half a minute, and our clock does not show it.
  policy.saw(sighting(22'000, 551'000));
  EXPECT_EQ(policy.deadline(), counted - Millis(30'000));
  policy.saw(sighting(23'000, 552'000));
  EXPECT_EQ(policy.deadline(), counted - Millis(30'000)) << "once, not again and again";
  // What was gained there does not come back here.
  policy.saw(sighting(24'000, 400'000));
  EXPECT_EQ(policy.deadline(), counted - Millis(30'000));
}

// EVIDENCE-OF: G6
TEST(HolderDeadline, IsOverAtOnceWhenTheStoreShowsThatTheLeaseIs) {
  SeededRandom random(8);
  HolderPolicy policy = counted_policy(random);
  policy.saw(sighting(2000, 501'000 + 3'600'000));
  EXPECT_EQ(policy.standing(at(2010)), Standing::Overdue);
}

TEST(HolderDeadline, CountsAnewFromARenewalWhateverPassedBefore) {
  SeededRandom random(9);
  HolderPolicy policy = counted_policy(random);
  policy.saw(sighting(22'000, 551'000));
  policy.renewed(at(30'000), Millis(90'000), at(30'010));
  policy.saw(sighting(30'000, 560'000));
  EXPECT_EQ(policy.deadline(), at(30'000 + 90'000 - 10'000 - 500 - 91));
  policy.saw(sighting(31'000, 561'000));
  EXPECT_EQ(policy.deadline(), at(30'000 + 90'000 - 10'000 - 500 - 91));
}

TEST(HolderDeadline, HangsOnNothingWhereTheStoreTellsNoTime) {
  SeededRandom random(10);
  const HoldSettings s{.ttl = Millis(90'000), .grace = Millis(10'000), .margin = Millis(500)};
  HolderPolicy policy(s, at(1000), s.ttl, random);
  const MonoTime counted = policy.deadline();
  policy.saw(sighting(22'000, 3'600'000));  // nothing to compare it with
  EXPECT_EQ(policy.deadline(), counted);
}

}  // namespace
}  // namespace stint::core
