// Leases on every store: renew, release, stall, check, expiry, progress.
#include "os/clock.h"
#include "os/pause.h"
#include "tests/conformance/lease_fixture.h"

namespace stint::testing {
namespace {

using core::Cause;
using core::State;

class LeaseHold : public LeaseTest {
 protected:
  static api::Grip without_hint(api::Grip grip) {
    grip.hint.reset();
    return grip;
  }
};
STINT_LEASES_ON_EVERY_STORE(LeaseHold);

TEST_P(LeaseHold, RenewsWithAndWithoutTheHint) {
  const Grant grant = acquire("db");
  const auto quick = client_.leases.renew(grant.grip, kHour);
  ASSERT_TRUE(done(quick));
  EXPECT_EQ(std::get<api::Held>(*quick).granted_ttl, kHour);
  EXPECT_EQ(std::get<api::Held>(*quick).lease.token, grant.token());
  EXPECT_TRUE(done(client_.leases.renew(without_hint(grant.grip), kHour)));
}

TEST_P(LeaseHold, AHintedAnswerInventsNothingThatWasNotRead) {
  const Grant grant = acquire("db");
  const auto answer = client_.leases.renew(grant.grip, kHour);
  ASSERT_TRUE(done(answer));
  const auto& at = std::get<api::Held>(*answer).lease.acquired_at;
  EXPECT_TRUE(!at || to_ms(*at) > 0) << "it did not begin in 1970";
}

// EVIDENCE-OF: G3
TEST_P(LeaseHold, RenewalKeepsItBeyondItsFirstTtl) {
  const Grant grant = acquire("db", "ann", brief());
  acquire("other", "ann", brief());
  ASSERT_TRUE(done(client_.leases.renew(grant.grip, kHour)));
  ASSERT_TRUE(wait_for("other", State::Free));
  EXPECT_EQ(state("db"), State::Held);
  EXPECT_EQ(get("db").token, grant.token());
}

// EVIDENCE-OF: G3
TEST_P(LeaseHold, RenewalNeverShortens) {
  const Grant grant = acquire("db");
  ASSERT_TRUE(done(client_.leases.renew(grant.grip, brief())));
  acquire("other", "ann", brief());
  ASSERT_TRUE(wait_for("other", State::Free));
  EXPECT_EQ(state("db"), State::Held);
}

// EVIDENCE-OF: G3
TEST_P(LeaseHold, RenewalNeverRevives) {
  const Grant grant = acquire("db", "ann", brief());
  ASSERT_TRUE(wait_for("db", State::Free));
  EXPECT_EQ(lost(client_.leases.renew(grant.grip, kHour)), Cause::Expired);
  EXPECT_EQ(lost(client_.leases.renew(without_hint(grant.grip), kHour)), Cause::Expired);
  EXPECT_EQ(state("db"), State::Free);
}

// EVIDENCE-OF: G8
TEST_P(LeaseHold, EveryVerbOfAHolderNeedsTokenClaimAndOwner) {
  const Grant grant = acquire("db");
  api::Grip claim = grant.grip;
  claim.claim = client_.claim();
  api::Grip who = grant.grip;
  who.owner = owner("bob");
  api::Grip token = grant.grip;
  token.token = grant.token().next();
  for (const auto& [grip, cause] :
       {std::pair{claim, Cause::NotHolder}, {who, Cause::NotHolder}, {token, Cause::NeverIssued}}) {
    const api::Grip wrong = without_hint(grip);
    EXPECT_EQ(lost(client_.leases.renew(wrong, kHour)), cause);
    EXPECT_EQ(lost(client_.leases.release(wrong, false)), cause);
    EXPECT_EQ(lost(client_.leases.release(wrong, true)), cause);
    EXPECT_EQ(lost(client_.leases.stall(wrong)), cause);
    EXPECT_EQ(lost(client_.leases.progress(wrong, "x")), cause);
    EXPECT_EQ(lost(client_.leases.check(wrong)), cause);
  }
  EXPECT_EQ(state("db"), State::Held);
}

TEST_P(LeaseHold, AWrongHintIsNoProof) {
  const Grant old = acquire("db");
  ASSERT_TRUE(done(client_.leases.release(old.grip, false)));
  const Grant now = acquire("db", "bob");
  api::Grip forged = old.grip;
  forged.hint = now.grip.hint;
  forged.token = now.token();
  // The versions are right: the claim must be looked at all the same.
  EXPECT_NE(lost(client_.leases.renew(forged, kHour)), Cause::None);
  EXPECT_NE(lost(client_.leases.release(forged, false)), Cause::None);
  EXPECT_EQ(state("db"), State::Held);
}

// Remembered is what was; a no tells what is.
TEST_P(LeaseHold, ANoIsReadAlsoWhereAHintIsShown) {
  const Grant grant = acquire("db");
  Client other(*site_);
  ASSERT_TRUE(done(other.leases.revoke(order("db", grant.token()), core::Reason::Revoked)));
  api::Grip wrong = grant.grip;
  wrong.claim = client_.claim();
  const auto answer = client_.leases.renew(wrong, kHour);
  ASSERT_TRUE(answer && std::holds_alternative<api::Lost>(*answer));
  EXPECT_EQ(std::get<api::Lost>(*answer).lease.token, Token(2));
  EXPECT_EQ(std::get<api::Lost>(*answer).lease.reason, core::Reason::Revoked);
}

TEST_P(LeaseHold, ReleaseEndsItNowAndIsDoneTheSecondTimeToo) {
  const Grant grant = acquire("db");
  EXPECT_TRUE(done(client_.leases.release(grant.grip, false)));
  EXPECT_EQ(state("db"), State::Free);
  EXPECT_TRUE(done(client_.leases.release(grant.grip, false)));
  EXPECT_EQ(lost(client_.leases.renew(grant.grip, kHour)), Cause::Released);
  EXPECT_EQ(get("db").token, grant.token()) << "a release raises no fence";
}

TEST_P(LeaseHold, ReleaseAfterExpiryIsDoneUntilSomebodyTookOver) {
  const Grant grant = acquire("db", "ann", brief());
  ASSERT_TRUE(wait_for("db", State::Free));
  EXPECT_TRUE(done(client_.leases.release(grant.grip, false)));
  acquire("db", "bob");
  EXPECT_EQ(lost(client_.leases.release(grant.grip, false)), Cause::Superseded);
}

TEST_P(LeaseHold, ReleaseWithAFenceMovesTheToken) {
  const Grant grant = acquire("db");
  EXPECT_TRUE(done(client_.leases.release(grant.grip, true)));
  EXPECT_EQ(get("db").token, grant.token().next());
  EXPECT_TRUE(get("db").owner.empty());
  EXPECT_EQ(acquire("db", "bob").token(), Token(3));
}

TEST_P(LeaseHold, StallEndsItAndSaysSo) {
  const Grant grant = acquire("db");
  EXPECT_TRUE(done(client_.leases.stall(grant.grip)));
  EXPECT_EQ(lost(client_.leases.check(grant.grip)), Cause::Stalled);
  EXPECT_EQ(acquire("db", "bob").answer.lease.reason, core::Reason::Stalled);
}

TEST_P(LeaseHold, CheckTellsAtOnceAndWritesNothing) {
  const Grant grant = acquire("db");
  const auto revision = client_.store->revision().value();
  EXPECT_TRUE(done(client_.leases.check(grant.grip)));
  EXPECT_EQ(client_.store->revision().value(), revision);
}

TEST_P(LeaseHold, RefusalsAndLossesWriteNothing) {
  const Grant grant = acquire("db");
  const auto revision = client_.store->revision().value();
  EXPECT_TRUE(refused("db"));
  api::Grip wrong = grant.grip;
  wrong.claim = client_.claim();
  EXPECT_FALSE(done(client_.leases.renew(wrong, kHour)));
  EXPECT_FALSE(done(client_.leases.revoke(order("db", Token(9)), core::Reason::Revoked)));
  EXPECT_EQ(client_.store->revision().value(), revision);
}

// EVIDENCE-OF: G2
TEST_P(LeaseHold, ExpiryFreesItForTheNext) {
  acquire("db", "ann", brief());
  EXPECT_TRUE(refused("db"));
  ASSERT_TRUE(wait_for("db", State::Free));
  const Grant next = acquire("db", "bob");
  EXPECT_EQ(next.token(), Token(2));
  EXPECT_EQ(next.answer.lease.reason, core::Reason::Expired);
}

TEST_P(LeaseHold, ProgressIsHandedToTheSuccessor) {
  const Grant grant = acquire("db");
  EXPECT_TRUE(done(client_.leases.progress(grant.grip, "row 7")));
  EXPECT_EQ(get("db").progress, "row 7");
  EXPECT_TRUE(done(client_.leases.renew(grant.grip, kHour))) << "progress makes no renewal fail";
  EXPECT_TRUE(done(client_.leases.release(grant.grip, false)));
  const Grant next = acquire("db", "bob");
  EXPECT_EQ(next.answer.previous_progress, "row 7");
  EXPECT_EQ(get("db").progress, "") << "the present holder has reported none";
  EXPECT_TRUE(done(client_.leases.release(next.grip, false)));
  EXPECT_EQ(acquire("db", "cy").answer.previous_progress, "row 7");
}

TEST_P(LeaseHold, RefusesAProgressMarkerThatIsNoLine) {
  const Grant grant = acquire("db");
  for (const std::string& marker :
       {std::string("a\nb"), std::string("\xFF"), std::string(1025, 'x')}) {
    const auto answer = client_.leases.progress(grant.grip, marker);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::Invalid);
  }
}

TEST_P(LeaseHold, RefusesTtlsThatTheStoreCannotKeep) {
  const Grant grant = acquire("db");
  EXPECT_FALSE(client_.leases.renew(grant.grip, client_.leases.smallest_ttl() - Millis(1)));
  EXPECT_FALSE(client_.leases.renew(grant.grip, Millis::max()));
  EXPECT_FALSE(client_.leases.transfer(order("db", grant.token()), owner("bob"), Millis::max()));
  EXPECT_FALSE(client_.leases.transfer(order("db", grant.token()), owner("bob"), Millis(-1)));
}

TEST_P(LeaseHold, AWaiterIsWokenByEveryEnd) {
  const auto woken = [](Watch& watch) {
    const MonoTime until = os::SystemClock().mono() + std::chrono::seconds(10);
    const bool is = os::wait_readable({watch.fd()}, until).front();
    watch.acknowledge();
    return is;
  };
  const auto watch = std::move(client_.leases.watch(resource("db")).value());
  const Grant one = acquire("db");
  EXPECT_TRUE(woken(*watch)) << "granted";
  EXPECT_TRUE(done(client_.leases.release(one.grip, false)));
  EXPECT_TRUE(woken(*watch)) << "released";
  const Grant two = acquire("db");
  woken(*watch);
  EXPECT_TRUE(done(client_.leases.stall(two.grip)));
  EXPECT_TRUE(woken(*watch)) << "stalled";
  EXPECT_TRUE(done(client_.leases.revoke(order("db", two.token()), core::Reason::Revoked)));
  EXPECT_TRUE(woken(*watch)) << "revoked";
}

}  // namespace
}  // namespace stint::testing
