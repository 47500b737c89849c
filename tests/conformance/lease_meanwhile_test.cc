// What happens between the look of a verb and its commit, on every store; and what a commit
// promises.
#include "tests/conformance/lease_fixture.h"
#include "tests/conformance/meanwhile.h"

namespace stint::testing {
namespace {

class LeaseMeanwhile : public LeaseTest {
 protected:
  Result<api::AcquireAnswer> late_bid(std::string_view name, const core::Terms& terms) {
    return late_.acquire({.resource = resource(name),
                          .owner = owner("ann"),
                          .claim = client_.claim(),
                          .terms = terms,
                          .note = "",
                          .retake = std::nullopt,
                          .count_refusal = false});
  }
  // The same lease without what was remembered of it: it is read first.
  static api::Grip to_be_read(const Grant& grant) {
    api::Grip grip = grant.grip;
    grip.hint.reset();
    return grip;
  }

  Meanwhile store_{site_->open()};
  service::LeaseService late_{
      store_,
      client_.ledger,
      service::begin_life(store_, client_.random, site_->clock().wall(), nullptr, {}).value(),
      site_->clock(),
      client_.random,
      nullptr};
};
STINT_LEASES_ON_EVERY_STORE(LeaseMeanwhile);

// EVIDENCE-OF: G1
TEST_P(LeaseMeanwhile, AFloorThatIsRaisedBeforeTheGrantIsWrittenCounts) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(done(client_.leases.release(acquire("old").grip, false)));
  store_.before_commit([&] { EXPECT_TRUE(client_.leases.forget(resource("old"))); });
  const auto answer = late_bid("new", plain_terms(kHour));
  ASSERT_TRUE(answer && std::holds_alternative<api::Granted>(*answer));
  EXPECT_EQ(std::get<api::Granted>(*answer).lease.token, Token(4));
}

// EVIDENCE-OF: G2
TEST_P(LeaseMeanwhile, AGrantToAnotherStands) {
  store_.before_commit([&] { acquire("db", "bob"); });
  const auto answer = late_bid("db", plain_terms(kHour));
  ASSERT_TRUE(answer);
  EXPECT_TRUE(std::holds_alternative<api::Refused>(*answer));
  EXPECT_EQ(get("db").owner, owner("bob"));
}

// EVIDENCE-OF: G3
TEST_P(LeaseMeanwhile, ALeaseThatRunsOutIsNotRenewed) {
  const Grant grant = acquire("db", "ann", brief());
  store_.before_commit([&] { EXPECT_TRUE(wait_for("db", core::State::Free)); });
  EXPECT_EQ(lost(late_.renew(to_be_read(grant), kHour)), core::Cause::Expired);
  EXPECT_EQ(state("db"), core::State::Free);
}

// EVIDENCE-OF: G8
TEST_P(LeaseMeanwhile, ALeaseThatIsTakenAwayIsNotRenewedAndNotReleased) {
  const Grant grant = acquire("db");
  store_.before_commit([&] {
    EXPECT_TRUE(done(client_.leases.transfer(order("db", grant.token()), owner("heir"), kHour)));
  });
  EXPECT_EQ(lost(late_.renew(to_be_read(grant), kHour)), core::Cause::Transferred);
  const Grant next = acquire("db", "heir");
  store_.before_commit([&] {
    EXPECT_TRUE(done(client_.leases.revoke(order("db", next.token()), core::Reason::Revoked)));
  });
  EXPECT_EQ(lost(late_.release(to_be_read(next), false)), core::Cause::Revoked);
}

// EVIDENCE-OF: G11
TEST_P(LeaseMeanwhile, WhatIsPromisedOutwardIsSynced) {
  const bool relaxed = store_.capabilities().relaxed_renewals;
  const auto granted = late_bid("db", plain_terms(kHour));
  ASSERT_TRUE(granted && std::holds_alternative<api::Granted>(*granted));
  EXPECT_EQ(store_.last_sync(), store::Sync::Durable);
  const Grant grant = acquire("other");
  ASSERT_TRUE(done(late_.renew(to_be_read(grant), kHour * 2)));
  EXPECT_EQ(store_.last_sync(), relaxed ? store::Sync::Relaxed : store::Sync::Durable);
  ASSERT_TRUE(done(late_.transfer(order("other", grant.token()), owner("heir"), kHour)));
  EXPECT_EQ(store_.last_sync(), store::Sync::Durable);
  const Grant next = acquire("other", "heir");
  ASSERT_TRUE(done(late_.release(to_be_read(next), false)));
  EXPECT_EQ(store_.last_sync(), store::Sync::Relaxed);
  ASSERT_TRUE(done(late_.revoke(order("other", next.token()), core::Reason::Revoked)));
  EXPECT_EQ(store_.last_sync(), store::Sync::Durable);
}

// EVIDENCE-OF: G6
TEST_P(LeaseMeanwhile, NoHolderTrustsAGrantForLongerThanMaxHold) {
  core::Terms terms = plain_terms(kHour);
  terms.max_hold = kHour;
  const Grant grant = acquire("db", "ann", terms);
  EXPECT_LT(grant.answer.granted_ttl, kHour);
  const auto renewed = client_.leases.renew(grant.grip, kHour);
  ASSERT_TRUE(renewed && std::holds_alternative<api::Held>(*renewed));
  EXPECT_LT(std::get<api::Held>(*renewed).granted_ttl, kHour);
}

}  // namespace
}  // namespace stint::testing
