// What guards ask of every store: its word on a token, sealed targets, fences kept in the store,
// and the acts of `stint admit`.
#include <algorithm>
#include <thread>

#include "api/json.h"
#include "base/text.h"
#include "service/fence_records.h"
#include "service/fence_service.h"
#include "service/store_move.h"
#include "tests/conformance/lease_fixture.h"
#include "tests/support/lying_stores.h"

namespace stint::testing {
namespace {

using core::Verdict;

class FencesTest : public LeaseTest {
 protected:
  core::Offer offer(std::string_view name, Token token) {
    return {.generation = client_.leases.generation(),
            .resource = std::string(name),
            .token = token,
            .mode = core::FenceMode::AtLeast,
            .key = "",
            .digest = ""};
  }
  core::Offer once(std::string_view name, Token token, std::string key) {
    core::Offer out = offer(name, token);
    out.mode = core::FenceMode::Once;
    out.key = std::move(key);
    out.digest = "d";
    return out;
  }
  core::Offer ordered(std::string_view name, Token token) {
    core::Offer out = offer(name, token);
    out.by_order = true;
    return out;
  }
  // The next grant of the resource, whoever had it.
  Token next(std::string_view name) {
    const api::Lease now = get(name);
    if (now.held) {
      EXPECT_TRUE(done(client_.leases.revoke(order(name, now.token), core::Reason::Revoked)));
    }
    return acquire(name).token();
  }
  static Verdict verdict(const Result<api::FenceAnswer>& answer) {
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? answer->verdict : Verdict::AskStore;
  }
  Verdict remembered(const core::Offer& by, const std::vector<std::string>& targets) {
    const auto answer = fences_.remember(by, targets);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer.value_or(Verdict::AskStore);
  }
  static api::Act act(std::string name, std::string key) {
    api::Act out;
    out.name = std::move(name);
    out.key = std::move(key);
    out.owner = owner("ann");
    return out;
  }
  static api::Act result(std::string name, std::string key, int code) {
    api::Act out = act(std::move(name), std::move(key));
    out.exit_code = code;
    out.digest = "sha256:abc";
    return out;
  }

  api::Fences& fences_ = client_.fences;
};
STINT_LEASES_ON_EVERY_STORE(FencesTest);

TEST_P(FencesTest, TheWordOnAResourceThatNobodyEverHeldIsZero) {
  const auto word = fences_.word(resource("none"));
  ASSERT_TRUE(word) << word.error().message;
  EXPECT_FALSE(word->issued.newest.issued());
  EXPECT_FALSE(word->issued.newest_granted);
  EXPECT_FALSE(word->live);
  EXPECT_TRUE(word->owner.empty());
  EXPECT_EQ(word->issued.generation, client_.leases.generation());
}

TEST_P(FencesTest, TheWordFollowsTheLease) {
  const Grant grant = acquire("db", "ann", brief());
  auto word = fences_.word(resource("db")).value();
  EXPECT_EQ(word.issued.newest, Token(1));
  EXPECT_TRUE(word.issued.newest_granted);
  EXPECT_TRUE(word.live);
  EXPECT_EQ(word.owner, owner("ann"));
  EXPECT_TRUE(word.claim.matches(grant.grip.claim.hash()));
  if (word.remaining) {
    EXPECT_LE(*word.remaining, grant.answer.granted_ttl);
  }
  ASSERT_TRUE(wait_for("db", core::State::Free));
  word = fences_.word(resource("db")).value();
  EXPECT_EQ(word.issued.newest, Token(1));
  EXPECT_TRUE(word.issued.newest_granted) << "late but not superseded";
  EXPECT_FALSE(word.live);
}

// EVIDENCE-OF: G5
TEST_P(FencesTest, NobodyWasGrantedTheTokenOfARevocationOrAReservation) {
  const Grant grant = acquire("db", "ann");
  ASSERT_TRUE(done(client_.leases.revoke(order("db", grant.token()), core::Reason::Revoked)));
  EXPECT_FALSE(fences_.word(resource("db")).value().issued.newest_granted);
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", Token(2)))), Verdict::NeverGranted);
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", Token(2)))), Verdict::NeverGranted);
  EXPECT_EQ(verdict(fences_.seal("t", ordered("db", Token(2)))), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", Token(1)))), Verdict::Stale);
  EXPECT_TRUE(fences_.fence("t").value()->nobodys);
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", Token(2)))), Verdict::NeverGranted)
      << "nor where the revocation sealed";
  EXPECT_EQ(verdict(fences_.seal("t", ordered("db", Token(2)))), Verdict::Admitted) << "again";
  ASSERT_TRUE(done(client_.leases.transfer(order("db", Token(2)), owner("heir"), kHour)));
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", Token(3)))), Verdict::NeverGranted);
  EXPECT_EQ(verdict(fences_.seal("t", ordered("db", Token(3)))), Verdict::Admitted);
  ASSERT_EQ(acquire("db", "heir").token(), Token(3));
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", Token(3)))), Verdict::Admitted);
}

// A fence that lives in the store hears of a revocation without a seal.
// EVIDENCE-OF: G5
TEST_P(FencesTest, WhatWasRevokedIsStaleAlsoWhereNothingSealed) {
  const Token first = next("db");
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", first))), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.admit("u", once("db", first, "k"))), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k"), offer("db", first))), Verdict::Admitted);
  ASSERT_TRUE(done(client_.leases.revoke(order("db", first), core::Reason::Revoked)));
  const auto refused = [&] {
    EXPECT_EQ(verdict(fences_.admit("t", offer("db", first))), Verdict::Stale);
    EXPECT_EQ(verdict(fences_.seal("t", offer("db", first))), Verdict::Stale);
    EXPECT_EQ(verdict(fences_.admit("u", once("db", first, "k"))), Verdict::Stale);
    EXPECT_EQ(verdict(fences_.begin(act("deploy", "k"), offer("db", first))), Verdict::Stale);
    EXPECT_EQ(verdict(fences_.begin(act("deploy", "new"), offer("db", first))), Verdict::Stale);
    EXPECT_EQ(verdict(fences_.finish(result("deploy", "k", 0), offer("db", first))),
              Verdict::Stale);
  };
  refused();
  acquire("db");
  refused();
  EXPECT_EQ(fences_.fence("t").value()->token, first) << "a refusal writes nothing";
  EXPECT_FALSE(fences_.act("deploy", "k").value()->result_token);
}

// The revocation lands between the reading and the commit of an intent.
class RevokedBetween final : public test::SharedStore {
 public:
  RevokedBetween(std::shared_ptr<store::Store> store, std::function<void()> revoke)
      : SharedStore(std::move(store)), revoke_(std::move(revoke)) {}
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    if (revoke_) std::exchange(revoke_, nullptr)();
    return SharedStore::commit(steps, sync);
  }

 private:
  std::function<void()> revoke_;
};

// EVIDENCE-OF: G5
TEST_P(FencesTest, TheNewestTokenIsComparedInTheCommitItself) {
  const Token first = next("db");
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k"), offer("db", first))), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "l"), offer("db", first))), Verdict::Admitted);
  RevokedBetween store(site_->open(), [&] {
    EXPECT_TRUE(done(client_.leases.revoke(order("db", first), core::Reason::Revoked)));
  });
  service::FenceService fences(store, site_->clock());
  EXPECT_EQ(verdict(fences.begin(act("deploy", "m"), offer("db", first))), Verdict::Stale);
  EXPECT_FALSE(fences_.act("deploy", "m").value());
  const Token second = acquire("db").token();
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k"), offer("db", second))), Verdict::Admitted);
  RevokedBetween again(site_->open(), [&] {
    EXPECT_TRUE(done(client_.leases.revoke(order("db", second), core::Reason::Revoked)));
  });
  service::FenceService late(again, site_->clock());
  EXPECT_EQ(verdict(late.finish(result("deploy", "k", 0), offer("db", second))), Verdict::Stale);
  EXPECT_FALSE(fences_.act("deploy", "k").value()->result_token);
}

TEST_P(FencesTest, AnOperatorMovesAFenceToAnotherResource) {
  const Token mine = next("r1");
  EXPECT_EQ(verdict(fences_.seal("t", once("r1", next("r1"), "k"))), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.admit("t", once("r1", get("r1").token, "k"))), Verdict::Admitted);
  const Token theirs = next("r2");
  EXPECT_EQ(verdict(fences_.seal("t", offer("r2", theirs))), Verdict::Foreign);
  core::Offer adopting = ordered("r2", theirs);
  adopting.adopt = true;
  EXPECT_EQ(verdict(fences_.seal("t", adopting)), Verdict::Admitted);
  EXPECT_EQ(fences_.fence("t").value()->resource, "r2");
  EXPECT_FALSE(fences_.fence("t").value()->used);
  EXPECT_EQ(verdict(fences_.admit("t", offer("r2", theirs))), Verdict::Admitted)
      << "its holder writes on";
  for (const Token token : {mine, get("r1").token}) {
    EXPECT_EQ(verdict(fences_.admit("t", offer("r1", token))), Verdict::Foreign);
  }
  core::Offer older = ordered("r2", theirs);
  older.adopt = true;
  const Token newer = next("r2");
  older.resource = "r1";
  older.token = mine;
  EXPECT_EQ(verdict(fences_.seal("t", older)), Verdict::Stale) << "only the newest moves it";
  EXPECT_EQ(verdict(fences_.admit("t", offer("r2", newer))), Verdict::Admitted);
}

// EVIDENCE-OF: G5
TEST_P(FencesTest, AfterASealNothingOlderIsAdmitted) {
  const Token first = next("db");
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", first))), Verdict::Admitted);
  const Token second = next("db");
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", second))), Verdict::Admitted);
  const auto stale = fences_.admit("t", offer("db", first));
  EXPECT_EQ(verdict(stale), Verdict::Stale);
  EXPECT_EQ(stale->fence->token, second);
  EXPECT_EQ(stale->owner, owner("ann"));
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", first))), Verdict::Stale);
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", second))), Verdict::Admitted);
  EXPECT_EQ(fences_.fence("t").value()->token, second);
  EXPECT_FALSE(fences_.fence("other").value().has_value());
}

TEST_P(FencesTest, WhatWasNeverIssuedOrBelongsElsewhereIsRefusedAndChangesNothing) {
  const Token token = next("db");
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", Token(99)))), Verdict::NeverIssued);
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", Token()))), Verdict::NoToken);
  core::Offer strange = offer("db", token);
  strange.generation = Generation::make(client_.random);
  EXPECT_EQ(verdict(fences_.seal("t", strange)), Verdict::Foreign);
  EXPECT_FALSE(fences_.fence("t").value().has_value());
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", token))), Verdict::Admitted);
  next("other");
  EXPECT_EQ(verdict(fences_.admit("t", offer("other", Token(1)))), Verdict::Foreign);
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", Token()))), Verdict::NoToken);
}

TEST_P(FencesTest, ATokenBelowTheNewestIsStaleAlsoWhereNothingWasSealed) {
  const Token first = next("db");
  next("db");
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", first))), Verdict::Stale);
  EXPECT_FALSE(fences_.fence("t").value().has_value());
}

TEST_P(FencesTest, OnceAdmitsOneWriteAndTellsARepetition) {
  const Token token = next("db");
  EXPECT_EQ(verdict(fences_.admit("t", once("db", token, "k"))), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.admit("t", once("db", token, "k"))), Verdict::Done);
  EXPECT_EQ(verdict(fences_.admit("t", once("db", token, "other"))), Verdict::Used);
  const Token later = next("db");
  EXPECT_EQ(verdict(fences_.admit("t", once("db", later, "other"))), Verdict::Admitted);
}

// EVIDENCE-OF: G5
TEST_P(FencesTest, RacingSealsAndWritesNeverLowerTheFence) {
  const Token first = next("db");
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", first))), Verdict::Admitted);
  const Token second = next("db");
  std::vector<std::thread> racers;
  for (int i = 0; i < 4; ++i) {
    racers.emplace_back([&, i] {
      service::FenceService mine(*client_.store, site_->clock());
      for (int round = 0; round < 10; ++round) {
        const auto answer =
            i == 0 ? mine.seal("t", offer("db", second)) : mine.admit("t", offer("db", first));
        EXPECT_TRUE(answer) << answer.error().message;
      }
    });
  }
  for (std::thread& racer : racers) racer.join();
  EXPECT_EQ(fences_.fence("t").value()->token, second);
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", first))), Verdict::Stale);
}

TEST_P(FencesTest, SealedTargetsAreRememberedSortedAndOnce) {
  const Token token = next("db");
  EXPECT_TRUE(fences_.sealed(resource("db")).value().empty());
  EXPECT_EQ(remembered(offer("db", token), {"file:/b", "file:/a"}), Verdict::Admitted);
  EXPECT_EQ(remembered(offer("db", token), {"file:/b"}), Verdict::Admitted);
  const std::vector<std::string> both = {"file:/a", "file:/b"};
  EXPECT_EQ(fences_.sealed(resource("db")).value(), both);
  EXPECT_EQ(fences_.word(resource("db")).value().sealed, both);
  const Token later = next("db");
  EXPECT_EQ(remembered(offer("db", token), {"file:/c"}), Verdict::Stale);
  EXPECT_EQ(remembered(offer("db", later), {"dir:/c"}), Verdict::Admitted);
  EXPECT_EQ(fences_.sealed(resource("db")).value().size(), 3U);
  EXPECT_TRUE(fences_.forget(resource("db"), "file:/a", {"why", "ops"}));
  EXPECT_TRUE(fences_.forget(resource("db"), "file:/a", {"why", "ops"})) << "again";
  EXPECT_EQ(fences_.sealed(resource("db")).value(),
            (std::vector<std::string>{"dir:/c", "file:/b"}));
  EXPECT_TRUE(fences_.sealed(resource("d")).value().empty()) << "another resource";
}

TEST_P(FencesTest, ATargetIsAboutToBeSealedUntilItsFenceStands) {
  using Texts = std::vector<std::string>;
  const auto with = [&](Token token, core::Sealing sealing) {
    core::Offer out = offer("db", token);
    out.sealing = sealing;
    return out;
  };
  const Token token = next("db");
  EXPECT_EQ(remembered(offer("db", token), {"file:/b", "file:/a", "file:/c"}), Verdict::Admitted);
  EXPECT_EQ(fences_.word(resource("db")).value().sealing, (Texts{"file:/a", "file:/b", "file:/c"}));
  EXPECT_EQ(remembered(with(token, core::Sealing::Stands), {"file:/b"}), Verdict::Admitted);
  EXPECT_EQ(remembered(offer("db", token), {"file:/b"}), Verdict::Admitted) << "it stays sealed";
  EXPECT_EQ(remembered(with(token, core::Sealing::Refused), {"file:/a", "file:/b"}),
            Verdict::Admitted);
  const auto word = fences_.word(resource("db")).value();
  EXPECT_EQ(word.sealed, (Texts{"file:/b", "file:/c"})) << "only what was not sealed is taken back";
  EXPECT_EQ(word.sealing, Texts{"file:/c"});
  const auto granted = [&] {
    EXPECT_TRUE(done(client_.leases.revoke(order("db", get("db").token), core::Reason::Revoked)));
    return acquire("db").answer;
  }();
  EXPECT_EQ(granted.sealed, word.sealed) << "the next holder hears of both";
  EXPECT_EQ(granted.sealing, word.sealing);
  for (const core::Sealing late : {core::Sealing::Stands, core::Sealing::Refused}) {
    EXPECT_EQ(remembered(with(token, late), {"file:/c"}), Verdict::Stale);
  }
  EXPECT_EQ(fences_.word(resource("db")).value().sealing, Texts{"file:/c"});
  EXPECT_TRUE(fences_.forget(resource("db"), "file:/c", {"why", "ops"}));
  EXPECT_EQ(fences_.sealed(resource("db")).value(), Texts{"file:/b"});
}

TEST_P(FencesTest, OfTooManyTargetsTheOneSealedLongestAgoMakesRoomAndAWordTooLongIsRefusedWhole) {
  const Token token = next("db");
  std::vector<std::string> many;
  for (std::size_t i = 0; i < api::kMostSealedTargets; ++i) many.push_back(cat("file:/", i));
  EXPECT_EQ(remembered(offer("db", token), many), Verdict::Admitted);
  const Token later = next("db");
  core::Offer stands = offer("db", later);
  stands.sealing = core::Sealing::Stands;
  std::erase(many, "file:/40");
  EXPECT_EQ(remembered(stands, many), Verdict::Admitted);
  EXPECT_EQ(remembered(offer("db", later), {"file:/one/more"}), Verdict::Admitted);
  const auto word = fences_.word(resource("db")).value();
  EXPECT_EQ(word.sealed.size(), api::kMostSealedTargets);
  EXPECT_EQ(std::ranges::count(word.sealed, "file:/40"), 0);
  EXPECT_EQ(std::ranges::count(word.sealed, "file:/one/more"), 1);
  for (const api::SealedTarget& one : word.targets) {
    EXPECT_EQ(one.token, later) << one.words;
    EXPECT_EQ(one.first_token, one.words == "file:/one/more" ? later : token) << one.words;
    EXPECT_TRUE(one.at && one.since) << one.words;
    EXPECT_EQ(one.stands, one.words != "file:/one/more");
  }
  many.insert(many.end(), {"file:/a", "file:/b"});
  EXPECT_FALSE(fences_.remember(offer("db", later), many)) << "at once";
  const Token other = next("other");
  std::vector<std::string> wide(5, std::string(api::kMostTargetBytes - 1, 'x'));
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] += std::to_string(i);
  EXPECT_FALSE(fences_.remember(offer("other", other), wide));
  wide.pop_back();
  EXPECT_EQ(remembered(offer("other", other), wide), Verdict::Admitted);
  EXPECT_EQ(remembered(offer("other", other), {std::string(api::kMostTargetBytes, 'y')}),
            Verdict::Admitted);
  EXPECT_EQ(fences_.sealed(resource("other")).value().size(), 4U) << "4096 bytes";
}

// The first of them may have got to its fence. G5
TEST_P(FencesTest, WhatTwoWereAboutToSealIsStruckByNeither) {
  const Token token = next("db");
  core::Offer refused = offer("db", token);
  refused.sealing = core::Sealing::Refused;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(remembered(offer("db", token), {"file:/a"}), Verdict::Admitted);
  }
  EXPECT_EQ(remembered(refused, {"file:/a"}), Verdict::Admitted);
  EXPECT_EQ(fences_.word(resource("db")).value().sealing, std::vector<std::string>{"file:/a"});
  EXPECT_EQ(remembered(offer("db", token), {"file:/b"}), Verdict::Admitted);
  EXPECT_EQ(remembered(refused, {"file:/b"}), Verdict::Admitted);
  EXPECT_EQ(fences_.word(resource("db")).value().sealing, std::vector<std::string>{"file:/a"});
}

TEST_P(FencesTest, WhatIsForgottenOrMadeAnewIsOnRecordWithWhoAndWhy) {
  const Token token = next("db");
  EXPECT_EQ(remembered(offer("db", token), {"file:/a"}), Verdict::Admitted);
  core::Offer anew = offer("db", token);
  anew.sealing = core::Sealing::MadeAnew;
  EXPECT_EQ(remembered(anew, {"file:/a"}), Verdict::Admitted);
  EXPECT_TRUE(fences_.word(resource("db")).value().sealing.empty());
  EXPECT_TRUE(fences_.forget(resource("db"), "file:/a", {.why = "a typo", .by = "ops"}));
  EXPECT_TRUE(fences_.forget(resource("db"), "file:/a", {.why = "a typo", .by = "ops"}));
  std::vector<std::string> told;
  const auto events = client_.events.list({.after = "", .prefix = "", .limit = 1000}).value();
  for (const api::Event& one : events) {
    if (one.kind.find("target_") == 0 || one.kind.find("fence_") == 0)
      told.push_back(api::to_json(one));
  }
  ASSERT_EQ(told.size(), 2U);
  EXPECT_NE(told[0].find("fence_made_anew"), std::string::npos) << told[0];
  EXPECT_NE(told[1].find("target_forgotten"), std::string::npos) << told[1];
  EXPECT_NE(told[1].find("a typo"), std::string::npos) << told[1];
  EXPECT_NE(told[1].find("ops"), std::string::npos) << told[1];
}

TEST_P(FencesTest, NothingIsKeptOfAWordThatIsTooLong) {
  const Token other = next("other");
  EXPECT_FALSE(fences_.remember(offer("other", other), {std::string(901, 'x')}));
  EXPECT_TRUE(fences_.sealed(resource("other")).value().empty());
}

TEST_P(FencesTest, HostileNamesAreRefusedBeforeAnythingIsWritten) {
  const Token token = next("db");
  for (const std::string& bad :
       {std::string(), std::string("a\nb"), std::string("\x1F"), std::string("\xFF\xFE"),
        std::string("nul\0in", 6), std::string(api::kMostTargetBytes + 1, 'x')}) {
    EXPECT_FALSE(fences_.seal(bad, offer("db", token))) << quoted(bad);
    EXPECT_FALSE(fences_.admit(bad, offer("db", token))) << quoted(bad);
    EXPECT_FALSE(fences_.fence(bad)) << quoted(bad);
    EXPECT_FALSE(fences_.remember(offer("db", token), {bad})) << quoted(bad);
    EXPECT_FALSE(fences_.begin(act(bad, "k"), offer("db", token))) << quoted(bad);
    EXPECT_FALSE(fences_.begin(act("n", bad), offer("db", token))) << quoted(bad);
    EXPECT_FALSE(fences_.act(bad, "k")) << quoted(bad);
    EXPECT_FALSE(fences_.seal("t", offer(bad, token))) << quoted(bad);
  }
  EXPECT_FALSE(fences_.fence("t").value().has_value());
  const std::string longest(api::kMostTargetBytes, 'x');
  EXPECT_EQ(verdict(fences_.seal(longest, offer("db", token))), Verdict::Admitted);
  const std::string name(api::kMostActNameBytes, 'n');
  const std::string key(api::kMostKeyBytes, 'k');
  EXPECT_EQ(verdict(fences_.begin(act(name, key), offer("db", token))), Verdict::Admitted);
}

TEST_P(FencesTest, AnActHasAnIntentAndAResult) {
  const Token token = next("db");
  EXPECT_FALSE(fences_.act("deploy", "k").value().has_value());
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k"), offer("db", token))), Verdict::Admitted);
  auto now = fences_.act("deploy", "k").value();
  ASSERT_TRUE(now);
  EXPECT_EQ(now->token, token);
  EXPECT_EQ(now->owner, owner("ann"));
  EXPECT_FALSE(now->result_token);
  EXPECT_EQ(fences_.fence(api::admit_target("deploy")).value()->token, token);
  EXPECT_EQ(verdict(fences_.finish(result("deploy", "k", 3), offer("db", token))),
            Verdict::Admitted);
  now = fences_.act("deploy", "k").value();
  EXPECT_EQ(now->result_token, token);
  EXPECT_EQ(now->exit_code, 3);
  EXPECT_EQ(now->digest, "sha256:abc");
  EXPECT_TRUE(now->ended_at);
  const auto again = fences_.begin(act("deploy", "k"), offer("db", token));
  EXPECT_EQ(verdict(again), Verdict::Done);
  EXPECT_EQ(again->act->exit_code, 3);
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "other"), offer("db", token))), Verdict::Admitted);
}

// EVIDENCE-OF: G5
TEST_P(FencesTest, OnlyTheResultOfTheHighestTokenCounts) {
  const Token first = next("db");
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k"), offer("db", first))), Verdict::Admitted);
  const Token second = next("db");
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k"), offer("db", second))), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.finish(result("deploy", "k", 1), offer("db", first))), Verdict::Stale);
  EXPECT_FALSE(fences_.act("deploy", "k").value()->result_token);
  EXPECT_EQ(verdict(fences_.finish(result("deploy", "k", 0), offer("db", second))),
            Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.finish(result("deploy", "k", 1), offer("db", first))), Verdict::Stale);
  EXPECT_EQ(fences_.act("deploy", "k").value()->exit_code, 0);
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k2"), offer("db", first))), Verdict::Stale);
}

TEST_P(FencesTest, AResultNeedsItsIntentAndAToken) {
  const Token token = next("db");
  EXPECT_FALSE(fences_.finish(result("deploy", "k", 0), offer("db", token)));
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k"), offer("db", Token()))), Verdict::NoToken);
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k"), once("db", token, "k"))), Verdict::Admitted);
  EXPECT_FALSE(fences_.finish(act("deploy", "k"), offer("db", token))) << "no exit code";
  const auto again = fences_.begin(act("deploy", "k"), once("db", token, "k"));
  EXPECT_EQ(verdict(again), Verdict::Done);
  EXPECT_FALSE(again->act->result_token) << "begun, and nobody knows how it ended";
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k2"), once("db", token, "k2"))), Verdict::Used);
}

// The commit is carried out, or not, and its answer is lost.
class Unanswered final : public test::SharedStore {
 public:
  Unanswered(std::shared_ptr<store::Store> store, int lost, bool applied)
      : SharedStore(std::move(store)), lost_(lost), applied_(applied) {}
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    if (lost_-- <= 0) return SharedStore::commit(steps, sync);
    if (applied_) {
      EXPECT_TRUE(SharedStore::commit(steps, sync));
    }
    return Error{Code::UnknownOutcome, "no answer"};
  }

 private:
  int lost_;
  bool applied_;
};

TEST_P(FencesTest, AnUnansweredCommitIsSettledOrStaysUnknown) {
  const Token token = next("db");
  int n = 0;
  for (const bool applied : {true, false}) {
    const std::shared_ptr<store::Store> shared = site_->open();
    Unanswered settled(shared, 1, applied);
    service::FenceService fences(settled, site_->clock());
    const std::string target = cat("t", ++n);
    EXPECT_EQ(verdict(fences.seal(target, offer("db", token))), Verdict::Admitted);
    EXPECT_EQ(fences_.fence(target).value()->token, token);
    Unanswered mute(shared, 100, false);
    service::FenceService never(mute, site_->clock());
    const auto unknown = never.seal(cat(target, "x"), offer("db", token));
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, Code::UnknownOutcome);
    const auto intent = never.begin(act(target, "k"), offer("db", token));
    ASSERT_FALSE(intent);
    EXPECT_EQ(intent.error().code, Code::UnknownOutcome);
  }
}

TEST_P(FencesTest, ADamagedFenceIsAnErrorAndNeverZero) {
  const Token token = next("db");
  for (const std::string value :
       {"rubbish", "{}", R"({"generation":"x","resource":"db","token":1})",
        R"({"generation":"00000000000000000000000000000000","resource":"db","token":0})"}) {
    store::Step step;
    step.kind = store::Step::Kind::Set;
    step.key = service::fence_key("t");
    step.value = value;
    ASSERT_TRUE(client_.store->commit({step}, store::Sync::Relaxed));
    const auto answer = fences_.seal("t", offer("db", token));
    ASSERT_FALSE(answer) << value;
    EXPECT_EQ(answer.error().code, Code::Unavailable);
    EXPECT_FALSE(fences_.fence("t")) << value;
  }
}

TEST_P(FencesTest, RefusalsAtATargetAreOneLineAMinuteWithACount) {
  api::Event event;
  event.at = site_->clock().wall();
  event.kind = "write_refused";
  event.resource = "db";
  event.token = 1;
  service::Ledger other(*client_.store, site_->clock(), 10'000);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE((i % 2 == 0 ? client_.events : static_cast<api::Events&>(other))
                    .record_refusal(event, "file:/a"));
  }
  EXPECT_TRUE(other.record_refusal(event, "file:/b"));
  const auto lines = events("db");
  ASSERT_EQ(lines.size(), 2U) << "one a target";
  for (const api::Event& line : lines) {
    EXPECT_EQ(std::get<std::int64_t>(line.details.back().second), 1);
  }
}

TEST_P(FencesTest, AMoveTakesFencesSealedTargetsAndActsAlong) {
  const Token token = next("db");
  EXPECT_EQ(remembered(offer("db", token), {"file:/a"}), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", token))), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.begin(act("deploy", "k"), offer("db", token))), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.finish(result("deploy", "k", 0), offer("db", token))),
            Verdict::Admitted);
  const core::Offer before = offer("db", token);
  ASSERT_TRUE(done(client_.leases.revoke(order("db", token), core::Reason::Revoked)));
  const auto there = stores().front().make();
  const auto to = there->open();
  const auto moved = service::move_leases(*client_.store, *to, nullptr, client_.random,
                                          there->clock(), {"old", "new", "op"});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_FALSE(fences_.admit("t2", before)) << "the old store's word is no longer true";
  Client client(*there);
  service::FenceService fences(*client.store, there->clock());
  EXPECT_EQ(fences.sealed(resource("db")).value(), std::vector<std::string>{"file:/a"});
  EXPECT_EQ(fences.act("deploy", "k").value()->exit_code, 0);
  EXPECT_EQ(verdict(fences.admit("t", before)), Verdict::Stale)
      << "equal to the fence, and revoked since";
  ASSERT_TRUE(client.bid("db", "ann", client.claim(), plain_terms(kHour)));
  core::Offer after = before;
  after.generation = client.leases.generation();
  after.token = client.leases.get(resource("db")).value().token;
  EXPECT_EQ(verdict(fences.seal("t", after)), Verdict::Admitted);
  EXPECT_NE(verdict(fences.admit("t", before)), Verdict::Admitted);
}

TEST_P(FencesTest, AForgottenResourceKeepsItsFencesBinding) {
  const Token token = next("db");
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", token))), Verdict::Admitted);
  EXPECT_EQ(remembered(offer("db", token), {"t"}), Verdict::Admitted);
  ASSERT_TRUE(done(client_.leases.revoke(order("db", token), core::Reason::Revoked)));
  ASSERT_TRUE(client_.leases.forget(resource("db")));
  EXPECT_EQ(verdict(fences_.seal("u", offer("db", token))), Verdict::Stale);
  EXPECT_EQ(fences_.sealed(resource("db")).value(), std::vector<std::string>{"t"});
  const Token later = acquire("db").token();
  EXPECT_EQ(verdict(fences_.seal("t", offer("db", later))), Verdict::Admitted);
  EXPECT_EQ(verdict(fences_.admit("t", offer("db", token))), Verdict::Stale);
}

}  // namespace
}  // namespace stint::testing
