// Leases on every store: list, history, forget, the ledger.
#include "tests/conformance/lease_fixture.h"

namespace stint::testing {
namespace {

using core::Reason;
using core::State;

class LeaseBooks : public LeaseTest {
 protected:
  std::vector<std::string> names(std::string prefix, std::string after = "",
                                 std::size_t limit = 100) {
    std::vector<std::string> out;
    const auto leases = client_.leases.list(
        {.prefix = std::move(prefix), .after = std::move(after), .limit = limit});
    for (const api::Lease& lease : leases.value()) out.push_back(lease.resource);
    return out;
  }
  std::vector<api::PastGrant> history(std::string_view name, std::size_t limit = 100) {
    return client_.leases.history(resource(name), limit).value();
  }
};
STINT_LEASES_ON_EVERY_STORE(LeaseBooks);

using Names = std::vector<std::string>;

TEST_P(LeaseBooks, ListsByPrefixInOrderAndByPages) {
  for (const char* name : {"b/2", "a", "b/1", "c", "b/3"}) acquire(name);
  EXPECT_EQ(names(""), (Names{"a", "b/1", "b/2", "b/3", "c"}));
  EXPECT_EQ(names("b/"), (Names{"b/1", "b/2", "b/3"}));
  EXPECT_EQ(names("b/", "b/1", 1), Names{"b/2"});
  EXPECT_EQ(names("b/", "a"), (Names{"b/1", "b/2", "b/3"}));
  EXPECT_EQ(names("b/", "c"), Names{});
}

TEST_P(LeaseBooks, ListsFreeOnesToo) {
  ASSERT_TRUE(done(client_.leases.release(acquire("a").grip, false)));
  const auto leases = client_.leases.list({.prefix = "", .after = "", .limit = 10}).value();
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0].state, State::Free);
  EXPECT_EQ(leases[0].token, Token(1));
}

TEST_P(LeaseBooks, HistoryTellsEveryGrantAndHowItEnded) {
  ASSERT_TRUE(done(client_.leases.release(acquire("db", "ann").grip, false)));
  acquire("db", "bob", brief());
  ASSERT_TRUE(wait_for("db", State::Free));
  const Grant third = acquire("db", "cy");
  ASSERT_TRUE(done(client_.leases.revoke(order("db", third.token()), Reason::Revoked)));
  acquire("db", "di");
  const auto all = history("db");
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].token, Token(5));
  EXPECT_FALSE(all[0].ended);
  EXPECT_EQ(all[1].token, Token(4));
  EXPECT_TRUE(all[1].owner.empty());
  EXPECT_EQ(all[2].ended, Reason::Revoked);
  EXPECT_EQ(all[3].ended, Reason::Expired);
  EXPECT_EQ(all[3].owner, owner("bob"));
  EXPECT_EQ(all[4].ended, Reason::Released);
  EXPECT_EQ(history("db", 2).size(), 2U);
  EXPECT_TRUE(history("none").empty());
}

TEST_P(LeaseBooks, HistoryOfOneNameHoldsNothingOfALongerOne) {
  ASSERT_TRUE(done(client_.leases.release(acquire("db/x").grip, false)));
  acquire("db/x");
  EXPECT_TRUE(history("db").empty());
}

// EVIDENCE-OF: G1
TEST_P(LeaseBooks, ForgetRaisesTheFloorForEveryName) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(done(client_.leases.release(acquire("db").grip, false)));
  EXPECT_EQ(client_.leases.forget(resource("db")).value(), Token(3));
  EXPECT_EQ(names(""), Names{});
  EXPECT_TRUE(history("db").empty());
  EXPECT_EQ(acquire("db").token(), Token(4));
  EXPECT_EQ(acquire("fresh").token(), Token(4));
}

TEST_P(LeaseBooks, ForgetsOnlyWhatIsFree) {
  acquire("db");
  const auto held = client_.leases.forget(resource("db"));
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, Code::Held);
  EXPECT_FALSE(client_.leases.forget(resource("none")));
  core::Terms terms = plain_terms(kHour);
  terms.at_least = kHour;
  ASSERT_TRUE(done(client_.leases.release(acquire("rest", "ann", terms).grip, false)));
  EXPECT_FALSE(client_.leases.forget(resource("rest")));
}

TEST_P(LeaseBooks, ForgottenSideTimersAndProgressDoNotComeBack) {
  core::Terms terms = plain_terms(kHour);
  terms.max_hold = kHour;
  const Grant grant = acquire("db", "ann", terms);
  ASSERT_TRUE(done(client_.leases.progress(grant.grip, "row 7")));
  ASSERT_TRUE(done(client_.leases.release(grant.grip, false)));
  ASSERT_TRUE(client_.leases.forget(resource("db")));
  EXPECT_EQ(acquire("db").answer.previous_progress, "");
}

TEST_P(LeaseBooks, LedgerTellsEveryChangeInOrder) {
  const Grant one = acquire("db", "ann");
  ASSERT_TRUE(done(client_.leases.release(one.grip, false)));
  ASSERT_TRUE(done(client_.leases.stall(acquire("db", "bob").grip)));
  acquire("db", "cy", brief());
  ASSERT_TRUE(wait_for("db", State::Free));
  const Grant four = acquire("db", "di");
  ASSERT_TRUE(done(client_.leases.transfer(order("db", four.token()), owner("ed"), kHour)));
  const Grant five = acquire("db", "ed");
  ASSERT_TRUE(done(client_.leases.revoke(order("db", five.token()), Reason::Revoked)));
  EXPECT_EQ(kinds("db"), (Names{"granted", "released", "granted", "stalled", "granted", "expired",
                                "granted", "transferred", "granted", "revoked"}));
  const auto all = events("db");
  EXPECT_EQ(all[0].owner, "ann");
  EXPECT_EQ(all[0].token, 1U);
  EXPECT_EQ(all[5].owner, "cy") << "the expiry is told of whom it happened to";
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].number, all[i].number);
}

TEST_P(LeaseBooks, LedgerGoesOnFromANumberAndGivesTheNewest) {
  for (const char* name : {"a", "b", "c", "d"}) acquire(name);
  const auto all = events();
  const auto rest =
      client_.events.list({.after = all[1].number, .prefix = "", .limit = 10, .newest = false})
          .value();
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_EQ(rest[0].resource, "c");
  const auto newest =
      client_.events.list({.after = "", .prefix = "", .limit = 2, .newest = true}).value();
  ASSERT_EQ(newest.size(), 2U);
  EXPECT_EQ(newest[1].resource, "d");
}

TEST_P(LeaseBooks, RefusalsAreCountedApartFromTheAnswer) {
  acquire("db", "ann");
  EXPECT_TRUE(refused("db", "bob"));
  EXPECT_EQ(kinds("db"), Names{"granted"}) << "nothing is written on the way to the answer";
  client_.ledger.flush();
  ASSERT_EQ(kinds("db"), (Names{"granted", "refused_held"}));
  const api::Event event = events("db").back();
  EXPECT_EQ(event.owner, "bob");
  EXPECT_EQ(event.token, 1U);
}

TEST_P(LeaseBooks, RenewalsAndProgressAreNotInTheLedger) {
  const Grant grant = acquire("db");
  ASSERT_TRUE(done(client_.leases.renew(grant.grip, kHour)));
  ASSERT_TRUE(done(client_.leases.progress(grant.grip, "x")));
  EXPECT_EQ(kinds(), Names{"granted"});
}

}  // namespace
}  // namespace stint::testing
