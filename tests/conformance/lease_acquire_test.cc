// Leases on every store: acquire, replay, re-take, refusals, many at once.
#include <thread>

#include "tests/conformance/lease_fixture.h"

namespace stint::testing {
namespace {

using core::Cause;
using core::State;

class LeaseAcquire : public LeaseTest {};
STINT_LEASES_ON_EVERY_STORE(LeaseAcquire);

TEST_P(LeaseAcquire, GrantsAFreeResourceFromTokenOne) {
  const Grant grant = acquire("db", "ann");
  EXPECT_EQ(grant.token(), Token(1));
  EXPECT_FALSE(grant.answer.replayed);
  EXPECT_EQ(grant.answer.lease.reason, core::Reason::First);
  EXPECT_EQ(grant.answer.lease.generation, client_.leases.generation());
  const api::Lease lease = get("db");
  EXPECT_TRUE(lease.held);
  EXPECT_EQ(lease.owner, owner("ann"));
  EXPECT_EQ(lease.ttl, kHour);
}

// EVIDENCE-OF: G2
TEST_P(LeaseAcquire, RefusesAHeldOneWithWhoAndUntilWhen) {
  acquire("db", "ann");
  const auto no = refused("db");
  ASSERT_TRUE(no);
  EXPECT_EQ(no->lease.owner, owner("ann"));
  EXPECT_TRUE(no->lease.held);
  if (no->retry_in) {
    EXPECT_LE(*no->retry_in, kHour);
  }
  EXPECT_TRUE(refused("db", "ann")) << "a label is for people, not a proof";
}

TEST_P(LeaseAcquire, ShowsTheHoldersNoteAndProgressToWhoIsRefused) {
  const Claim claim = client_.claim();
  auto first = granted(client_.leases.acquire({.resource = resource("db"),
                                               .owner = owner("ann"),
                                               .claim = claim,
                                               .terms = plain_terms(kHour),
                                               .note = "nightly",
                                               .retake = std::nullopt,
                                               .count_refusal = true}),
                       "db", "ann", claim);
  ASSERT_TRUE(done(client_.leases.progress(first.grip, "row 7")));
  const auto no = refused("db");
  ASSERT_TRUE(no);
  EXPECT_EQ(no->lease.note, "nightly");
  EXPECT_EQ(no->lease.progress, "row 7");
}

TEST_P(LeaseAcquire, RepeatedWithTheSameClaimReturnsTheSameGrant) {
  const Grant first = acquire("db", "ann");
  const Grant again = granted(client_.bid("db", "ann", first.grip.claim, plain_terms(kHour)), "db",
                              "ann", first.grip.claim);
  EXPECT_TRUE(again.answer.replayed);
  EXPECT_EQ(again.token(), first.token());
  EXPECT_TRUE(done(client_.leases.renew(again.grip, kHour)));
}

TEST_P(LeaseAcquire, RetakesOnlyForWhoShowsThePresentClaim) {
  const Grant first = acquire("db", "ann");
  const auto wrong = client_.bid("db", "ann", client_.claim(), plain_terms(kHour), client_.claim());
  EXPECT_TRUE(std::holds_alternative<api::Refused>(wrong.value()));
  const Claim claim = client_.claim();
  const Grant second = granted(
      client_.bid("db", "ann", claim, plain_terms(kHour), first.grip.claim), "db", "ann", claim);
  EXPECT_EQ(second.token(), first.token().next());
  EXPECT_EQ(second.answer.lease.reason, core::Reason::Retaken);
  EXPECT_EQ(lost(client_.leases.renew(first.grip, kHour)), Cause::Superseded);
}

TEST_P(LeaseAcquire, RefusesTermsThatCannotBeKept) {
  const auto code = [&](const core::Terms& terms) {
    const auto answer = client_.bid("db", "ann", client_.claim(), terms);
    return answer ? Code::Failed : answer.error().code;
  };
  EXPECT_EQ(code(plain_terms(Millis(0))), Code::Invalid);
  EXPECT_EQ(code(plain_terms(client_.leases.smallest_ttl() - Millis(1))), Code::Invalid);
  EXPECT_EQ(code(plain_terms(Millis::max())), Code::Invalid);
  core::Terms terms = plain_terms(Millis(2000));
  terms.max_hold = Millis(1000);
  EXPECT_EQ(code(terms), Code::Invalid);
  EXPECT_EQ(state("db"), State::Free);
}

TEST_P(LeaseAcquire, RefusesANoteThatWouldSpoilTheRecord) {
  for (const std::string& note :
       {std::string("\xFF"), std::string("a\nb"), std::string(5000, 'n')}) {
    const auto answer = client_.leases.acquire({.resource = resource("db"),
                                                .owner = owner("ann"),
                                                .claim = client_.claim(),
                                                .terms = plain_terms(kHour),
                                                .note = note,
                                                .retake = std::nullopt,
                                                .count_refusal = true});
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::Invalid);
  }
  EXPECT_EQ(state("db"), State::Free);
}

TEST_P(LeaseAcquire, NeedsAnOwner) {
  const auto answer = client_.leases.acquire({.resource = resource("db"),
                                              .owner = Owner(),
                                              .claim = client_.claim(),
                                              .terms = plain_terms(kHour),
                                              .note = "",
                                              .retake = std::nullopt,
                                              .count_refusal = true});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Invalid);
}

// EVIDENCE-OF: G1
TEST_P(LeaseAcquire, TokensGrowAcrossReleaseExpiryTransferAndRevoke) {
  std::vector<Token> tokens;
  const auto next = [&](Millis ttl) {
    Grant grant = acquire("db", "ann", ttl);
    tokens.push_back(grant.token());
    return grant;
  };
  EXPECT_TRUE(done(client_.leases.release(next(kHour).grip, false)));
  EXPECT_TRUE(done(client_.leases.release(next(kHour).grip, true)));
  next(brief());
  ASSERT_TRUE(wait_for("db", State::Free));
  EXPECT_TRUE(done(client_.leases.stall(next(kHour).grip)));
  EXPECT_TRUE(done(client_.leases.revoke(order("db", next(kHour).token()), core::Reason::Revoked)));
  EXPECT_TRUE(done(client_.leases.transfer(order("db", next(kHour).token()), owner("ann"), kHour)));
  next(kHour);
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end()));
  EXPECT_EQ(std::unique(tokens.begin(), tokens.end()), tokens.end());
}

TEST_P(LeaseAcquire, CountsEachResourceByItself) {
  acquire("a");
  acquire("a/b");
  EXPECT_EQ(acquire("a/b/c").token(), Token(1));
  EXPECT_TRUE(refused("a"));
}

// EVIDENCE-OF: G2
TEST_P(LeaseAcquire, OfEightThreadsOneGetsIt) {
  std::atomic<int> grants = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto answer = client_.bid(
          "db", "same", Claim::parse(os::SystemRandom().id_hex()).value(), plain_terms(kHour));
      if (answer && std::holds_alternative<api::Granted>(*answer)) ++grants;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(grants, 1);
}

// EVIDENCE-OF: G1 G2
TEST_P(LeaseAcquire, EightClientsInTurnGetEveryTokenOnce) {
  std::vector<std::atomic<int>> seen(8 * 10 + 1);
  std::atomic<int> inside = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int got = 0; got < 10;) {
        const Claim claim = Claim::parse(os::SystemRandom().id_hex()).value();
        const auto answer = client_.bid("db", "ann", claim, plain_terms(kHour));
        ASSERT_TRUE(answer.has_value()) << answer.error().message;
        const auto* yes = std::get_if<api::Granted>(&*answer);
        if (yes == nullptr) continue;
        EXPECT_EQ(++inside, 1);
        ++seen.at(yes->lease.token.number());
        --inside;
        EXPECT_TRUE(done(client_.leases.release(
            {resource("db"), yes->lease.token, claim, owner("ann"), yes->hint}, false)));
        ++got;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(seen[i], 1) << i;
}

// EVIDENCE-OF: G2
TEST(LeaseProcesses, OfEightProcessesOneGetsIt) {
  for (const StoreCase& each : stores()) {
    if (!each.across_processes) continue;
    const auto site = each.make();
    const auto codes = in_processes(8, [&](int) {
      Client client(*site);
      const auto answer = client.bid("db", "same", client.claim(), plain_terms(kHour));
      if (!answer) return 2;
      return std::holds_alternative<api::Granted>(*answer) ? 1 : 0;
    });
    EXPECT_EQ(std::count(codes.begin(), codes.end(), 1), 1) << each.name;
    EXPECT_EQ(std::count(codes.begin(), codes.end(), 0), 7) << each.name;
  }
}

}  // namespace
}  // namespace stint::testing
