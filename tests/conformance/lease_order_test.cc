// Leases on every store: transfer, take-up, revoke; resting, cooldown, max_hold.
#include "tests/conformance/lease_fixture.h"

namespace stint::testing {
namespace {

using core::Cause;
using core::State;

class LeaseOrder : public LeaseTest {};
STINT_LEASES_ON_EVERY_STORE(LeaseOrder);
class LeaseRest : public LeaseTest {
 protected:
  core::Terms terms(Millis ttl, Millis max_hold, Millis at_least, Millis cooldown) {
    return {.ttl = ttl, .max_hold = max_hold, .at_least = at_least, .cooldown = cooldown};
  }
};
STINT_LEASES_ON_EVERY_STORE(LeaseRest);

TEST_P(LeaseOrder, TransferReservesItForTheHeirUnderANewToken) {
  const Grant grant = acquire("db", "ann");
  const auto moved = client_.leases.transfer(order("db", grant.token()), owner("heir"), kHour);
  ASSERT_TRUE(done(moved));
  EXPECT_EQ(state("db"), State::Reserved);
  EXPECT_EQ(get("db").token, Token(2));
  EXPECT_EQ(get("db").by, "op");
  EXPECT_EQ(lost(client_.leases.renew(grant.grip, kHour)), Cause::Transferred);
  EXPECT_EQ(lost(client_.leases.release(grant.grip, false)), Cause::Transferred);
  EXPECT_TRUE(refused("db", "ann"));
  const Grant taken = acquire("db", "heir");
  EXPECT_EQ(taken.token(), Token(2));
  EXPECT_EQ(taken.answer.lease.reason, core::Reason::TakenUp);
  EXPECT_TRUE(refused("db", "heir")) << "once";
}

TEST_P(LeaseOrder, AReservationNobodyTookLapses) {
  const Grant grant = acquire("db", "ann");
  ASSERT_TRUE(done(client_.leases.transfer(order("db", grant.token()), owner("heir"), brief())));
  EXPECT_TRUE(refused("db", "ann"));
  ASSERT_TRUE(wait_for("db", State::Free));
  EXPECT_EQ(acquire("db", "ann").token(), Token(3));
}

TEST_P(LeaseOrder, RevokeTakesItFromEverybody) {
  const Grant grant = acquire("db", "ann");
  ASSERT_TRUE(done(client_.leases.revoke(order("db", grant.token()), core::Reason::Cancelled)));
  EXPECT_EQ(state("db"), State::Free);
  EXPECT_EQ(get("db").token, Token(2));
  EXPECT_TRUE(get("db").owner.empty());
  EXPECT_EQ(lost(client_.leases.renew(grant.grip, kHour)), Cause::Revoked);
  EXPECT_EQ(lost(client_.leases.release(grant.grip, false)), Cause::Revoked);
}

// EVIDENCE-OF: G8
TEST_P(LeaseOrder, NeedsTheExpectedToken) {
  acquire("db", "ann");
  EXPECT_EQ(lost(client_.leases.revoke(order("db", Token(2)), core::Reason::Revoked)),
            Cause::WrongToken);
  EXPECT_EQ(lost(client_.leases.transfer(order("db", Token(2)), owner("x"), kHour)),
            Cause::WrongToken);
  EXPECT_EQ(lost(client_.leases.revoke(order("none", Token(1)), core::Reason::Revoked)),
            Cause::WrongToken);
  EXPECT_EQ(state("db"), State::Held);
}

TEST_P(LeaseOrder, WorksOnAnExpiredRecordToShutALateWriterOut) {
  acquire("db", "ann", brief());
  ASSERT_TRUE(wait_for("db", State::Free));
  EXPECT_TRUE(done(client_.leases.revoke(order("db", Token(1)), core::Reason::Revoked)));
  EXPECT_EQ(get("db").token, Token(2));
  EXPECT_TRUE(done(client_.leases.transfer(order("db", Token(2)), owner("heir"), kHour)));
  EXPECT_EQ(acquire("db", "heir").token(), Token(3));
}

TEST_P(LeaseOrder, NeedsAReasonAndAName) {
  acquire("db", "ann");
  for (const auto& [why, by] : {std::pair<std::string, std::string>{"", "op"},
                                {"w", ""},
                                {"a\nb", "op"},
                                {std::string(1025, 'w'), "op"}}) {
    const api::OrderRequest bad{
        .resource = resource("db"), .expected = Token(1), .why = why, .by = by};
    EXPECT_FALSE(client_.leases.revoke(bad, core::Reason::Revoked));
    EXPECT_FALSE(client_.leases.transfer(bad, owner("x"), kHour));
  }
  EXPECT_FALSE(client_.leases.transfer(order("db", Token(1)), Owner(), kHour)) << "to nobody";
}

// EVIDENCE-OF: G2
TEST_P(LeaseRest, AtLeastOutlastsARelease) {
  const Grant grant = acquire("db", "ann", terms(kHour, {}, brief(), {}));
  ASSERT_TRUE(done(client_.leases.release(grant.grip, false)));
  EXPECT_EQ(state("db"), State::Resting);
  const auto no = refused("db", "ann");
  ASSERT_TRUE(no);
  if (no->retry_in) {
    EXPECT_LE(*no->retry_in, brief());
  }
  ASSERT_TRUE(wait_for("db", State::Free));
  acquire("db", "bob");
}

TEST_P(LeaseRest, RevokeCutsAtLeastShort) {
  const Grant grant = acquire("db", "ann", terms(kHour, {}, kHour, {}));
  ASSERT_TRUE(done(client_.leases.revoke(order("db", grant.token()), core::Reason::Revoked)));
  EXPECT_EQ(state("db"), State::Free);
}

TEST_P(LeaseRest, CooldownFollowsAnUncleanEndOnly) {
  const Grant clean = acquire("db", "ann", terms(kHour, {}, {}, kHour));
  ASSERT_TRUE(done(client_.leases.release(clean.grip, false)));
  EXPECT_EQ(state("db"), State::Free);
  const Grant stalled = acquire("db", "ann", terms(kHour, {}, {}, brief()));
  ASSERT_TRUE(done(client_.leases.stall(stalled.grip)));
  EXPECT_EQ(state("db"), State::Resting);
  ASSERT_TRUE(wait_for("db", State::Free));
  acquire("db", "ann", terms(brief(), {}, {}, brief()));
  ASSERT_TRUE(wait_for("db", State::Resting));
  EXPECT_TRUE(refused("db"));
  ASSERT_TRUE(wait_for("db", State::Free));
}

TEST_P(LeaseRest, ATransferUnderCooldownIsTakenUpOnlyAfterIt) {
  const Grant grant = acquire("db", "ann", terms(kHour, {}, {}, brief()));
  ASSERT_TRUE(done(client_.leases.transfer(order("db", grant.token()), owner("heir"), kHour)));
  EXPECT_TRUE(refused("db", "heir"));
  EXPECT_TRUE(site_->eventually([&] { return !refused("db", "heir"); }));
}

TEST_P(LeaseRest, MaxHoldEndsItHoweverOftenItIsRenewed) {
  const Grant grant = acquire("db", "ann", terms(brief(), brief() * 2, {}, {}));
  Cause cause = Cause::None;
  ASSERT_TRUE(site_->eventually([&] {
    cause = lost(client_.leases.renew(grant.grip, brief()));
    return cause != Cause::None;
  }));
  EXPECT_EQ(cause, Cause::MaxHold);
  EXPECT_EQ(acquire("db", "bob").token(), Token(2));
}

TEST_P(LeaseRest, SideTimersOfAnEarlierGrantDoNotBindTheNext) {
  const Grant first = acquire("db", "ann", terms(brief(), brief(), brief(), brief()));
  ASSERT_TRUE(wait_for("db", State::Free));
  const Grant next = acquire("db", "bob");
  EXPECT_TRUE(done(client_.leases.renew(next.grip, kHour)));
  EXPECT_TRUE(done(client_.leases.release(next.grip, false)));
  EXPECT_EQ(state("db"), State::Free);
  EXPECT_EQ(lost(client_.leases.renew(first.grip, kHour)), Cause::Superseded);
}

}  // namespace
}  // namespace stint::testing
