#include "service/store_life.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "service/lease_service.h"
#include "service/queue_service.h"
#include "store/memory/memory_store.h"
#include "tests/conformance/stores.h"

namespace stint::service {
namespace {

class FakeAnchors final : public Anchors {
 public:
  Result<std::optional<Anchor>> recall() override { return anchor; }
  void remember(const Anchor& seen) override { anchor = seen; }
  std::optional<Anchor> anchor;
};

class StoreLifeTest : public ::testing::Test {
 protected:
  Result<Life> begin(store::Store& store, const LifeOptions& options = {}) {
    return begin_life(store, random_, clock_.wall(), &anchors_, options);
  }
  Result<Life> recovered(store::Store& store, Token past = {}) {
    return recover(store, random_, clock_.wall(), &anchors_,
                   {.why = "restored", .by = "op", .past = past});
  }
  static void expect_refused(const Result<Life>& life, std::string_view why) {
    ASSERT_FALSE(life);
    EXPECT_EQ(life.error().code, Code::Unavailable);
    EXPECT_NE(life.error().message.find(why), std::string::npos) << life.error().message;
  }
  // One grant of "db" through a whole service; its token.
  Token grant(store::Store& store, const Life& life) {
    Ledger ledger(store, clock_, 1000);
    LeaseService leases(store, ledger, life, clock_, random_, &anchors_);
    const Claim claim = Claim::make(random_);
    auto answer = leases.acquire({.resource = ResourceName::parse("db").value(),
                                  .owner = Owner::parse("ann").value(),
                                  .claim = claim,
                                  .terms = {Millis(1000), {}, {}, {}},
                                  .note = "",
                                  .retake = std::nullopt,
                                  .count_refusal = true});
    const auto& lease = std::get<api::Granted>(answer.value()).lease;
    EXPECT_TRUE(
        leases.release({ResourceName::parse("db").value(), lease.token, claim, {}, {}}, false));
    return lease.token;
  }

  testing::FakeClock clock_;
  SeededRandom random_{1};
  FakeAnchors anchors_;
  store::MemoryStore store_{clock_};
};

TEST_F(StoreLifeTest, IsMadeOnceAndFoundAgain) {
  const Life first = begin(store_).value();
  const Life second = begin(store_).value();
  EXPECT_EQ(first.meta.generation, second.meta.generation);
  EXPECT_EQ(first.version, second.version);
  EXPECT_EQ(first.meta.floor, Token());
}

// EVIDENCE-OF: G12
TEST_F(StoreLifeTest, APinnedClientNeverCreatesAndNeverTakesAnother) {
  SeededRandom other(9);
  const LifeOptions pinned{.pinned = Generation::make(other), .may_create = true};
  expect_refused(begin(store_, pinned), "may not make one");
  EXPECT_FALSE(store_.read({"meta/store"}).value().entries.front().present());
  const Life life = begin(store_).value();
  expect_refused(begin(store_, pinned), "not the pinned");
  EXPECT_TRUE(begin(store_, {.pinned = life.meta.generation, .may_create = true}));
}

TEST_F(StoreLifeTest, IsNotMadeWhereThatIsNotAllowed) {
  expect_refused(begin(store_, {.pinned = std::nullopt, .may_create = false}), "may not make one");
}

// EVIDENCE-OF: G12
TEST_F(StoreLifeTest, AStoreThatWentBackIsRefusedUntilRecovered) {
  const Life life = begin(store_).value();
  grant(store_, life);
  ASSERT_TRUE(anchors_.anchor) << "a grant is remembered outside";
  EXPECT_TRUE(begin(store_));
  anchors_.anchor->revision += 1000;  // as if the store had been restored from before
  expect_refused(begin(store_), "went back in time");
  ASSERT_TRUE(recovered(store_));
  EXPECT_TRUE(begin(store_));
}

// EVIDENCE-OF: G12
TEST_F(StoreLifeTest, AStoreThatWasReplacedOrEmptiedIsRefused) {
  grant(store_, begin(store_).value());
  store::MemoryStore empty(clock_);
  expect_refused(begin(empty), "is empty");
  FakeAnchors nobody;
  ASSERT_TRUE(begin_life(empty, random_, clock_.wall(), &nobody, {}));
  expect_refused(begin(empty), "remembers");
}

// EVIDENCE-OF: G1 G12
TEST_F(StoreLifeTest, RecoveryRaisesTheFloorAboveEverythingIssuedAndKeepsTheLine) {
  const Life before = begin(store_).value();
  const Token old = grant(store_, before);
  const Life after = recovered(store_).value();
  EXPECT_NE(after.meta.generation, before.meta.generation);
  EXPECT_EQ(after.meta.ancestors, std::vector{before.meta.generation});
  EXPECT_GE(after.meta.floor.number(), static_cast<std::uint64_t>(to_ms(clock_.wall()) / 1000)
                                           << 20U);
  EXPECT_LT(after.meta.floor.number(), Token::kMax);
  const Token next = grant(store_, after);
  EXPECT_GT(next, old);
  EXPECT_GT(next, after.meta.floor);
  EXPECT_TRUE(begin(store_, {.pinned = before.meta.generation, .may_create = true}))
      << "a pin on an ancestor still holds";
}

// A process that has the store open when an operator says `recovered` goes on in the new
// generation: its next grant would otherwise be foreign to every target.
// EVIDENCE-OF: G12
TEST_F(StoreLifeTest, WhoHasItOpenGoesOnInTheNewGeneration) {
  const Life before = begin(store_).value();
  Ledger ledger(store_, clock_, 1000);
  LeaseService leases(store_, ledger, before, clock_, random_, &anchors_);
  const Generation& seen_before = leases.generation();
  const Life after = recovered(store_).value();
  ASSERT_TRUE(leases.get(ResourceName::parse("db").value()));
  EXPECT_EQ(leases.generation(), after.meta.generation);
  EXPECT_EQ(seen_before, before.meta.generation) << "what was seen stays what it was";
  // Another store at the same place is not followed.
  Meta foreign = after.meta;
  foreign.generation = Generation::make(random_);
  foreign.ancestors.clear();
  ASSERT_TRUE(store_.commit({set_meta(foreign, store::Expect::Any, 0)}, store::Sync::Durable));
  ASSERT_TRUE(leases.get(ResourceName::parse("db").value()));
  EXPECT_EQ(leases.generation(), after.meta.generation);
}

// A backup of an earlier generation under a process that has the store open: it remembers, so it
// grants nothing, and the anchor keeps what it knows.
// EVIDENCE-OF: G12
TEST_F(StoreLifeTest, WhoHasItOpenRefusesAnEarlierGenerationAndKeepsTheAnchor) {
  begin(store_).value();
  const store::MemoryStore::Image backup = store_.image();
  const Life second = recovered(store_).value();
  Ledger ledger(store_, clock_, 1000);
  LeaseService leases(store_, ledger, second, clock_, random_, &anchors_);
  store_.restore(backup, 0);
  const auto answer = leases.acquire({.resource = ResourceName::parse("db").value(),
                                      .owner = Owner::parse("ann").value(),
                                      .claim = Claim::make(random_),
                                      .terms = {Millis(1000), {}, {}, {}},
                                      .note = "",
                                      .retake = std::nullopt,
                                      .count_refusal = true});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Unavailable);
  EXPECT_EQ(anchors_.anchor->generation, second.meta.generation);
  const Life third = recovered(store_).value();
  EXPECT_NE(std::ranges::find(third.meta.ancestors, second.meta.generation),
            third.meta.ancestors.end())
      << "targets that were sealed in the second one go on";
}

// The same for queues: from the older floor epochs would be given out twice.
// EVIDENCE-OF: G1 G12
TEST_F(StoreLifeTest, QueuesRefuseAnEarlierGenerationToo) {
  begin(store_).value();
  const store::MemoryStore::Image backup = store_.image();
  recovered(store_).value();
  Ledger ledger(store_, clock_, 1000);
  QueueService queues(store_, ledger, clock_, random_);
  const auto queue = core::QueueName::parse("q").value();
  const api::PutRequest put{.queue = queue,
                            .payload = "work",
                            .unique = {},
                            .labels = {},
                            .by = "ann",
                            .limits = {},
                            .create = true};
  ASSERT_TRUE(queues.put(put));
  store_.restore(backup, 0);
  const auto again = queues.put(put);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::Unavailable) << again.error().message;
}

// EVIDENCE-OF: G12
TEST_F(StoreLifeTest, RestoringTheSameBackupTwiceNeverRepeatsAToken) {
  begin(store_).value();
  const Token first = grant(store_, recovered(store_).value());
  clock_.advance(std::chrono::seconds(1));
  const Token second = grant(store_, recovered(store_).value());
  EXPECT_GT(second, first);
  const Token past(second.number() + 5'000'000'000);
  EXPECT_EQ(recovered(store_, past).value().meta.floor, past);
}

// The floor by time is no help here: the clock stands still between the two recoveries.
// EVIDENCE-OF: G1 G12
TEST_F(StoreLifeTest, TwoRecoveriesInOneMomentDoNotMeet) {
  store::MemoryStore first(clock_);
  const Token before = grant(first, recovered(first).value());
  store::MemoryStore second(clock_);
  const Token after = grant(second, recovered(second).value());
  EXPECT_GT(after, before);
}

TEST_F(StoreLifeTest, ARecoveredEmptyStoreDescendsFromTheOneThatIsRemembered) {
  const Life before = begin(store_).value();
  grant(store_, before);
  store::MemoryStore empty(clock_);
  const Life after = recovered(empty).value();
  EXPECT_EQ(after.meta.ancestors, std::vector{before.meta.generation});
  EXPECT_TRUE(begin(empty));
}

TEST_F(StoreLifeTest, ADamagedMetaRecordIsAFaultAndNotANewStore) {
  begin(store_).value();
  store::Step step;
  step.kind = store::Step::Kind::Set;
  step.key = "meta/store";
  step.value = "{}";
  ASSERT_TRUE(store_.commit({step}, store::Sync::Durable));
  expect_refused(begin(store_), "damaged");
}

// EVIDENCE-OF: G1
TEST(FloorAfterTail, IsAboveWhatTimeCanHaveIssuedAndNeverGuessed) {
  store::Entry tail;
  EXPECT_EQ(floor_after_tail(tail).value(), Token()) << "nothing was ever lost";
  tail.version = 1;
  tail.value = "1700000000000";
  EXPECT_EQ(floor_after_tail(tail).value(), Token(1'700'000'000ULL << 20U));
  for (const char* value : {"", "x", "-1", "1.5", "99999999999999999999"}) {
    tail.value = value;
    EXPECT_FALSE(floor_after_tail(tail)) << value;
  }
}

}  // namespace
}  // namespace stint::service
