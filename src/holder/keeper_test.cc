#include "holder/keeper.h"

#include <gtest/gtest.h>

#include "tests/support/no_leases.h"

namespace stint::holder {
namespace {

class HandClock final : public Clock {
 public:
  MonoTime mono() const override { return now; }
  WallTime wall() const override { return WallTime(); }
  MonoTime now{Millis(1'000'000)};
};

// A store in which every lease is held, with a clock of its own.
class AllHeld final : public test::NoLeases {
 public:
  explicit AllHeld(HandClock& clock) : clock_(clock) {}
  Nanos ahead{0};  // of our clock
  bool lost = false;
  bool tells = true;

  Result<api::HoldAnswer> renew(const api::Grip&, Millis ttl) override { return answer(ttl); }
  Result<api::HoldAnswer> check(const api::Grip&) override { return answer(Millis(0)); }

  std::optional<Nanos> time() const {
    if (!tells) return std::nullopt;
    return clock_.now.time_since_epoch() + ahead;
  }

 private:
  Result<api::HoldAnswer> answer(Millis ttl) {
    clock_.now += Millis(5);
    const auto there = time();
    clock_.now += Millis(5);
    if (lost) return api::HoldAnswer(api::Lost{core::Cause::Expired, {}, there});
    return api::HoldAnswer(api::Held{{}, ttl, there});
  }
  HandClock& clock_;
};

class KeeperOfTwo : public ::testing::Test {
 protected:
  Kept kept(const char* name) {
    Kept out{.grip = {*ResourceName::parse(name), Token(1), Claim::make(random_), std::nullopt,
                      std::nullopt},
             .sent_at = clock_.now,
             .granted_ttl = settings_.ttl};
    clock_.now += Millis(10);
    out.answered_at = clock_.now;
    out.store_time = store_.time();
    return out;
  }
  Keeper make() { return {store_, clock_, random_, settings_, {kept("a"), kept("b")}}; }
  // Both are renewed when it is due.
  void beat(Keeper& keeper) {
    for (int i = 0; i < 2; ++i) {
      clock_.now = std::max(clock_.now, keeper.next());
      keeper.step();
    }
  }

  HandClock clock_;
  AllHeld store_{clock_};
  SeededRandom random_{1};
  const core::HoldSettings settings_{
      .ttl = Millis(90'000), .grace = Millis(10'000), .margin = Millis(500)};
};

// EVIDENCE-OF: G4
TEST_F(KeeperOfTwo, ReportsAStepOnceAndGoesOnFromTheRenewal) {
  Keeper keeper = make();
  beat(keeper);
  EXPECT_FALSE(keeper.take_step());
  for (const Millis step : {Millis(3'600'000), Millis(-3'600'000)}) {
    store_.ahead += step;
    beat(keeper);
    const auto told = keeper.take_step();
    ASSERT_TRUE(told);
    EXPECT_LE(std::chrono::abs(*told - step), Millis(100));
    EXPECT_FALSE(keeper.take_step());
    EXPECT_EQ(keeper.state().standing, KeeperState::Standing::Holding);
    beat(keeper);
    EXPECT_FALSE(keeper.take_step()) << "once";
  }
}

// EVIDENCE-OF: G4
TEST_F(KeeperOfTwo, ReportsTheStepThatEndedTheLease) {
  Keeper keeper = make();
  store_.ahead += Millis(3'600'000);
  store_.lost = true;
  beat(keeper);
  EXPECT_EQ(keeper.state().standing, KeeperState::Standing::Lost);
  EXPECT_TRUE(keeper.take_step());
}

// A machine that was paused: its clock says nothing, the next answer does, though it renews
// nothing. EVIDENCE-OF: G6
TEST_F(KeeperOfTwo, BringsTheDeadlineNearerByATimeThatOnlyTheStoreHasSeen) {
  Keeper keeper = make();
  const MonoTime before = keeper.state().deadline;
  keeper.look();
  EXPECT_EQ(keeper.state().deadline, before);
  store_.ahead += Millis(20'000);
  keeper.look();
  // To within the time that an answer takes.
  EXPECT_LE(keeper.state().deadline, before - Millis(19'990));
  EXPECT_GE(keeper.state().deadline, before - Millis(20'010));
  EXPECT_EQ(keeper.state().standing, KeeperState::Standing::Holding);
  store_.ahead += Millis(70'000);
  keeper.look();
  EXPECT_EQ(keeper.state().standing, KeeperState::Standing::Overdue);
}

// The answer took ten milliseconds: they are not ours.   EVIDENCE-OF: G6
TEST_F(KeeperOfTwo, CountsARenewalFromBeforeItWasSent) {
  Keeper keeper(store_, clock_, random_, settings_, {kept("a")});
  clock_.now = keeper.next();
  const MonoTime sent_at = clock_.now;
  keeper.step();
  ASSERT_EQ(clock_.now, sent_at + Millis(10));
  EXPECT_EQ(keeper.state().deadline, sent_at + Millis(90'000 - 10'000 - 500 - 91));
}

// EVIDENCE-OF: G6
TEST_F(KeeperOfTwo, HasTheEarlierDeadlineWhicheverLeaseItIs) {
  Kept soon = kept("a");
  soon.granted_ttl = Millis(60'000);
  Kept late = kept("b");
  late.sent_at = soon.sent_at;
  const MonoTime expected = soon.sent_at + Millis(60'000 - 10'000 - 500 - 61);
  for (const auto& both : {std::vector{soon, late}, std::vector{late, soon}}) {
    const Keeper keeper(store_, clock_, random_, settings_, both);
    EXPECT_EQ(keeper.state().deadline, expected);
    EXPECT_EQ(keeper.state().kill_at, expected + Millis(10'000));
  }
}

TEST_F(KeeperOfTwo, ComparesNothingWhereTheStoreTellsNoTime) {
  store_.tells = false;
  Keeper keeper = make();
  const MonoTime before = keeper.state().deadline;
  store_.ahead += Millis(3'600'000);
  keeper.look();
  beat(keeper);
  EXPECT_FALSE(keeper.take_step());
  EXPECT_GT(keeper.state().deadline, before);
}

}  // namespace
}  // namespace stint::holder
