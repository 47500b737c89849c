// What single verbs write: terms, timers, reasons and the words of lease.h.
#include <gtest/gtest.h>

#include <set>

#include "core/lease.h"
#include "tests/conformance/lease_model.h"

namespace stint::core {
namespace {

using stint::testing::LeaseModel;

const ClaimHash kOne("01");
const ClaimHash kTwo("02");

Owner owner(std::string_view name) { return Owner::parse(name).value(); }

Acquire bid(const ClaimHash& claim, const Terms& terms, const ClaimHash& retake = {},
            std::string_view who = "ann") {
  return {.owner = owner(who), .claim = claim, .terms = terms, .note = "", .retake = retake};
}

Terms terms(int ttl, int max_hold = 0, int at_least = 0, int cooldown = 0) {
  return {Millis(ttl), Millis(max_hold), Millis(at_least), Millis(cooldown)};
}

Proof proof(const LeaseModel& lease, const ClaimHash& claim) {
  return {lease.record().own->token, claim, std::nullopt};
}

TEST(CheckTerms, RefusesWhatCannotBothBeKept) {
  EXPECT_TRUE(check_terms(terms(1000)));
  EXPECT_TRUE(check_terms(terms(1000, 1000, 1000, 9000)));
  EXPECT_FALSE(check_terms(terms(1001, 1000)));
  EXPECT_FALSE(check_terms(terms(1000, 1000, 1001)));
}

TEST(CheckTerms, RefusesNegativeAndAbsurdLengths) {
  EXPECT_FALSE(check_terms(terms(-1)));
  EXPECT_FALSE(check_terms(terms(1000, -1)));
  EXPECT_FALSE(check_terms(terms(1000, 0, -1)));
  EXPECT_FALSE(check_terms(terms(1000, 0, 0, -1)));
  EXPECT_FALSE(check_terms({.ttl = Millis::max(), .max_hold = {}, .at_least = {}, .cooldown = {}}));
}

// EVIDENCE-OF: G3
TEST(LeaseRenew, NeverShortensAndNeverPassesMaxHold) {
  LeaseModel lease;
  lease.play(bid(kOne, terms(1000, 2500)));
  EXPECT_EQ(lease.play(Renew{proof(lease, kOne), Millis(1)}).outcome, Outcome::Renewed);
  EXPECT_EQ(lease.record().timers.alive.remaining, Millis(1000));
  lease.now += Millis(900);
  lease.play(Renew{proof(lease, kOne), Millis(1000)});
  lease.now += Millis(900);
  EXPECT_EQ(lease.play(Renew{proof(lease, kOne), Millis(1000)}).change.alive.length, Millis(700));
  lease.now += Millis(700);
  const Decision late = lease.play(Renew{proof(lease, kOne), Millis(1000)});
  EXPECT_EQ(late.outcome, Outcome::Lost);
  EXPECT_EQ(late.cause, Cause::MaxHold);
}

TEST(LeaseRetake, KeepsTheAgeForMaxHold) {
  LeaseModel lease;
  lease.play(bid(kOne, terms(1000, 1500)));
  lease.now += Millis(600);
  EXPECT_EQ(lease.play(bid(kTwo, terms(1000, 1500), kOne)).outcome, Outcome::Granted);
  EXPECT_EQ(lease.record().timers.cap.remaining, Millis(900));
  EXPECT_EQ(lease.record().own->reason, Reason::Retaken);
}

// The cooldown once counted from the end of the whole ttl, although max_hold came first.
TEST(LeaseRetake, IsGrantedNoMoreThanIsLeftOfMaxHoldAndCoolsFromThere) {
  LeaseModel lease;
  lease.play(bid(kOne, terms(1000, 1500)));
  lease.now += Millis(900);
  EXPECT_EQ(lease.play(bid(kTwo, terms(1000, 1500, 0, 4000), kOne)).change.alive.length,
            Millis(600));
  lease.now += Millis(600);
  EXPECT_EQ(state_of(lease.record()), State::Resting);
  EXPECT_EQ(rest_left(lease.record()), Millis(4000));
  lease.now += Millis(4000);
  EXPECT_EQ(state_of(lease.record()), State::Free);
}

TEST(LeaseRetake, FencesTheEarlierUseOut) {
  LeaseModel lease;
  lease.play(bid(kOne, terms(1000)));
  const Proof before = proof(lease, kOne);
  lease.play(bid(kTwo, terms(1000), kOne));
  EXPECT_EQ(lease.play(Renew{before, Millis(1000)}).cause, Cause::Superseded);
  EXPECT_EQ(lease.play(Release{before, false}).outcome, Outcome::Lost);
}

// EVIDENCE-OF: G2
TEST(LeaseRetake, DoesNotCutTheAtLeastOfTheEarlierGrantShort) {
  LeaseModel lease;
  lease.play(bid(kOne, terms(1000, 0, 5000)));
  lease.play(bid(kTwo, terms(1000), kOne));
  lease.play(Release{proof(lease, kTwo), false});
  EXPECT_EQ(state_of(lease.record()), State::Resting);
  lease.now += Millis(5000);
  EXPECT_EQ(state_of(lease.record()), State::Free);
}

// EVIDENCE-OF: G2
TEST(LeaseRetake, IsAnUncleanEndThatTheCooldownCountsFrom) {
  LeaseModel lease;
  lease.play(bid(kOne, terms(1000, 0, 0, 4000)));
  lease.now += Millis(500);
  lease.play(bid(kTwo, terms(1000), kOne));
  lease.play(Release{proof(lease, kTwo), false});
  lease.now += Millis(3999);
  EXPECT_EQ(state_of(lease.record()), State::Resting);
  lease.now += Millis(1);
  EXPECT_EQ(state_of(lease.record()), State::Free);
}

TEST(LeaseCooldown, CountsFromTheExpiryAndNotFromACleanRelease) {
  LeaseModel lease;
  lease.play(bid(kOne, terms(1000, 0, 0, 4000)));
  lease.now += Millis(800);
  lease.play(Renew{proof(lease, kOne), Millis(1000)});
  lease.now += Millis(1000);
  EXPECT_EQ(state_of(lease.record()), State::Resting);
  EXPECT_EQ(rest_left(lease.record()), Millis(4000));
  lease.now += Millis(4000);
  EXPECT_EQ(lease.play(bid(kTwo, terms(1000, 0, 0, 4000))).outcome, Outcome::Granted);
  lease.play(Release{proof(lease, kTwo), false});
  EXPECT_EQ(state_of(lease.record()), State::Free);
}

TEST(LeaseTransfer, CanBeTakenUpOnceByItsHeirUnderTheSameToken) {
  LeaseModel lease;
  lease.play(bid(kOne, terms(1000)));
  const Order order{lease.record().own->token, "moving", "op", "id"};
  const Transfer transfer{order, owner("heir"), Millis(3000)};
  EXPECT_EQ(lease.play(transfer).outcome, Outcome::Moved);
  EXPECT_EQ(lease.play(transfer).outcome, Outcome::MovedBefore);
  EXPECT_EQ(lease.record().timers.alive.remaining, Millis(3000));
  const Decision taken = lease.play(bid(kTwo, terms(1000), {}, "heir"));
  EXPECT_EQ(taken.outcome, Outcome::Granted);
  EXPECT_EQ(taken.change.own->token, order.expected.next());
  EXPECT_EQ(taken.change.own->reason, Reason::TakenUp);
  EXPECT_EQ(taken.change.own->by, "op");
  EXPECT_EQ(lease.play(bid(kOne, terms(1000), {}, "heir")).outcome, Outcome::Refused);
}

TEST(LeaseRevoke, CutsAtLeastShortAndStartsTheCooldown) {
  LeaseModel lease;
  lease.play(bid(kOne, terms(1000, 0, 60'000, 300)));
  lease.play(Revoke{{lease.record().own->token, "w", "b", "id"}, Reason::Cancelled});
  EXPECT_EQ(lease.record().own->reason, Reason::Cancelled);
  EXPECT_EQ(rest_left(lease.record()), Millis(300));
}

TEST(LeaseProgress, OutlivesItsReporterForTheSuccessor) {
  LeaseModel lease;
  lease.play(bid(kOne, terms(1000)));
  EXPECT_EQ(lease.play(Progress{proof(lease, kOne), "row 7"}).outcome, Outcome::Noted);
  lease.now += Millis(1000);
  lease.play(bid(kTwo, terms(1000)));
  EXPECT_EQ(lease.record().work.progress, "row 7");
  EXPECT_LT(lease.record().work.progress_token, lease.record().own->token);
}

TEST(LeaseReason, SaysHowTheOwnershipBeforeEnded) {
  LeaseModel lease;
  EXPECT_EQ(lease.play(bid(kOne, terms(1000))).change.own->reason, Reason::First);
  lease.now += Millis(1000);
  EXPECT_EQ(lease.play(bid(kOne, terms(1000))).change.own->reason, Reason::Expired);
  lease.play(Release{proof(lease, kOne), false});
  EXPECT_EQ(lease.play(bid(kOne, terms(1000))).change.own->reason, Reason::Released);
  lease.play(Stall{proof(lease, kOne)});
  EXPECT_EQ(lease.play(bid(kOne, terms(1000))).change.own->reason, Reason::Stalled);
}

TEST(RestLeft, IsUnknownWhereTheStoreCannotTell) {
  Record record;
  record.own.emplace();
  EXPECT_EQ(rest_left(record), std::nullopt);
  record.timers.rest = {TimerState::Running, Millis(10), Millis(10)};
  record.timers.cool = {TimerState::Running, Millis(20), Millis(20)};
  EXPECT_EQ(rest_left(record), Millis(20));
  record.timers.cool.remaining.reset();
  EXPECT_EQ(rest_left(record), std::nullopt);
}

TEST(PastOf, IsEmptyWhileTheOwnershipStands) {
  LeaseModel lease;
  EXPECT_FALSE(past_of(lease.record(), {}));
  lease.play(bid(kOne, terms(1000)));
  EXPECT_FALSE(past_of(lease.record(), {}));
  lease.now += Millis(1500);
  const auto past = past_of(lease.record(), WallTime(lease.now));
  ASSERT_TRUE(past);
  EXPECT_EQ(past->ended, Reason::Expired);
  EXPECT_EQ(past->ended_at, WallTime(lease.now - Millis(500)));
}

TEST(LeaseWords, AreDistinctAndParseBack) {
  std::set<std::string_view> seen;
  for (int i = 0; i <= static_cast<int>(Reason::Recovered); ++i) {
    const auto reason = static_cast<Reason>(i);
    EXPECT_EQ(parse_reason(word(reason)), reason);
    EXPECT_TRUE(seen.insert(word(reason)).second);
  }
  for (int i = 0; i <= static_cast<int>(Standing::Revoked); ++i) {
    const auto standing = static_cast<Standing>(i);
    EXPECT_EQ(parse_standing(word(standing)), standing);
  }
  seen.clear();
  for (int i = 0; i <= static_cast<int>(Cause::WrongToken); ++i) {
    EXPECT_TRUE(seen.insert(word(static_cast<Cause>(i))).second);
  }
  EXPECT_FALSE(parse_reason(""));
  EXPECT_FALSE(parse_reason("Expired"));
  EXPECT_FALSE(parse_standing("held"));
}

}  // namespace
}  // namespace stint::core
