// Leases on every store against the pure law: the same random verbs must get the same answers.
//
// Only verbs whose answer does not hang on the moment are compared on stores with a real clock:
// ttls are an hour there, and the moments are compared by themselves. On a clock that the test
// moves, time passes as well.
#include <iostream>

#include "base/random.h"
#include "tests/conformance/lease_fixture.h"
#include "tests/conformance/lease_model.h"

namespace stint::testing {
namespace {

class LeaseDifferential : public LeaseTest {
 protected:
  struct Player {
    Claim claim;
    Token token;
  };

  // What either side says, in one line: the answer, its cause, the token and the state afterwards.
  static std::string line(std::string_view answer, core::Cause cause, Token token,
                          core::State state) {
    return std::string(answer) + " " + std::string(core::word(cause)) + " " +
           std::to_string(token.number()) + " " + std::string(core::word(state));
  }
  static std::string said_by_law(const core::Decision& d, const LeaseModel& model) {
    const core::Record record = model.record();
    const bool no = d.outcome == core::Outcome::Lost || d.outcome == core::Outcome::Refused;
    return line(no ? "no" : "yes", d.cause, record.own ? record.own->token : Token(),
                core::state_of(record));
  }
  std::string said_by_store(bool yes, core::Cause cause) {
    const api::Lease lease = get(name_);
    return line(yes ? "yes" : "no", cause, lease.token, lease.state);
  }

  void play(std::uint64_t seed, int verbs);
  void acquire_both(Player& me, int who, bool retake, const core::Terms& terms);
  void hold_both(const Player& me, int who, std::uint64_t verb);
  void order_both(int who, std::uint64_t verb);
  void forget_both();
  static Owner label(int who) { return owner("client-" + std::to_string(who)); }

  std::string name_;
  LeaseModel model_;
  int steps_ = 0;
};
STINT_LEASES_ON_EVERY_STORE(LeaseDifferential);

void LeaseDifferential::acquire_both(Player& me, int who, bool retake, const core::Terms& terms) {
  const Claim claim = client_.claim();
  const core::Decision law = model_.play(
      core::Acquire{label(who), claim.hash(), terms, "", retake ? me.claim.hash() : ClaimHash()});
  const auto answer = client_.bid(name_, label(who).text(), claim, terms,
                                  retake ? std::optional(me.claim) : std::nullopt);
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  const auto* yes = std::get_if<api::Granted>(&*answer);
  EXPECT_EQ(said_by_store(yes != nullptr, core::Cause::None), said_by_law(law, model_));
  if (yes != nullptr) me = {claim, yes->lease.token};
}

void LeaseDifferential::hold_both(const Player& me, int who, std::uint64_t verb) {
  const api::Grip grip{resource(name_), me.token, me.claim, label(who), std::nullopt};
  const core::Proof proof{me.token, me.claim.hash(), label(who)};
  const auto both = [&](const core::Verb& pure, const Result<api::HoldAnswer>& answer) {
    const core::Decision law = model_.play(pure);
    const core::Cause cause = lost(answer);
    EXPECT_EQ(said_by_store(cause == core::Cause::None, cause), said_by_law(law, model_));
  };
  switch (verb) {
    case 0: return both(core::Renew{proof, kHour}, client_.leases.renew(grip, kHour));
    case 1: return both(core::Release{proof, false}, client_.leases.release(grip, false));
    case 2: return both(core::Release{proof, true}, client_.leases.release(grip, true));
    case 3: return both(core::Stall{proof}, client_.leases.stall(grip));
    case 4: return both(core::Check{proof}, client_.leases.check(grip));
    default: return both(core::Progress{proof, "p"}, client_.leases.progress(grip, "p"));
  }
}

void LeaseDifferential::order_both(int who, std::uint64_t verb) {
  const core::Record record = model_.record();
  const Token expected = verb % 4 == 0 ? Token(1) : record.own ? record.own->token : Token();
  const core::Order pure{expected, "w", "b", "order-" + std::to_string(steps_)};
  const bool transfer = verb % 2 == 0;
  const core::Decision law = transfer ? model_.play(core::Transfer{pure, label(who), kHour})
                                      : model_.play(core::Revoke{pure, core::Reason::Revoked});
  const auto answer = transfer
                          ? client_.leases.transfer(order(name_, expected), label(who), kHour)
                          : client_.leases.revoke(order(name_, expected), core::Reason::Revoked);
  const core::Cause cause = lost(answer);
  EXPECT_EQ(said_by_store(cause == core::Cause::None, cause), said_by_law(law, model_));
}

void LeaseDifferential::forget_both() {
  const core::Record record = model_.record();
  const bool may = record.own && core::state_of(record) == core::State::Free;
  EXPECT_EQ(client_.leases.forget(resource(name_)).has_value(), may);
  if (may) model_.forget();
  EXPECT_EQ(get(name_).state, core::state_of(model_.record()));
}

void LeaseDifferential::play(std::uint64_t seed, int verbs) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  SeededRandom random(seed);
  // A new name for each seed; the floor is the store's and goes on.
  name_ = "db-" + std::to_string(seed);
  const Token floor = model_.floor;
  model_ = {};
  model_.floor = floor;
  auto* const fake = dynamic_cast<const FakeClock*>(&site_->clock());
  std::vector<Player> players(3, Player{client_.claim(), Token()});
  for (int i = 0; i < verbs && !HasFailure(); ++i, ++steps_) {
    const int who = static_cast<int>(random.below(3));
    Player& me = players[static_cast<std::size_t>(who)];
    core::Terms terms = plain_terms(kHour);
    if (random.below(4) == 0) terms.cooldown = kHour;
    if (random.below(4) == 0) terms.at_least = kHour;
    if (random.below(4) == 0) terms.max_hold = kHour * 2;
    const std::uint64_t dice = random.below(16);
    if (dice < 5) acquire_both(me, who, dice < 2, terms);
    if (dice >= 5 && dice < 12) hold_both(me, who, random.below(6));
    if (dice >= 12 && dice < 14) order_both(who, random.below(8));
    if (dice == 14) forget_both();
    if (dice == 15 && fake != nullptr) {
      const Millis passed(static_cast<std::int64_t>(random.below(5'400'000)));
      const MonoTime until = fake->mono() + passed;
      while (fake->mono() < until) site_->tick();
      model_.now += std::chrono::duration_cast<Millis>(passed + (fake->mono() - until));
    }
  }
}

// EVIDENCE-OF: G1 G2 G3 G8
TEST_P(LeaseDifferential, AnswersAsTheLawDoes) {
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) play(seed, 150);
  // One in sixteen lets time pass, where the clock is the test's, and is idle elsewhere.
  std::cout << steps_ << " turns on " << GetParam().name << " and on the law\n";
}

// Not before its ttl, and at the latest a step of the store later; after a renewal, too. Each look
// is judged by when it was asked or answered, so that no load on the machine can make it wrong.
// EVIDENCE-OF: G3 G4
TEST_P(LeaseDifferential, ALeaseEndsWhenTheLawSays) {
  const auto now = [&] { return site_->clock().mono(); };
  const store::Capabilities& can = client_.store->capabilities();
  // A server that ends its timers by itself has to get to run for it.
  const int patience = can.clock == store::Capabilities::ClockKind::TimersOnly ? 3 : 1;
  const Nanos late = can.step * patience;
  SeededRandom random(7);
  for (const bool renewed : {false, true}) {
    const Millis ttl = brief() + Millis(static_cast<std::int64_t>(random.below(100)));
    MonoTime sent = now();
    const Grant grant = acquire(renewed ? "renewed" : "granted", "ann", ttl);
    Nanos length = grant.answer.granted_ttl;
    if (renewed) {
      sent = now();
      const auto answer = client_.leases.renew(grant.grip, ttl);
      ASSERT_TRUE(answer && std::holds_alternative<api::Held>(*answer));
      length = std::max(length, Nanos(std::get<api::Held>(*answer).granted_ttl));
    }
    const MonoTime told = now();
    ASSERT_TRUE(site_->eventually([&] {
      const MonoTime asked = now();
      const bool held = get(grant.grip.resource.text()).held;
      if (held) {
        EXPECT_LE(asked - told, length + late) << "it stands too long";
      } else {
        EXPECT_GE(now() - sent, Nanos(ttl)) << "it ended early";
      }
      return !held;
    }));
  }
}

}  // namespace
}  // namespace stint::testing
