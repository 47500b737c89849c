// The queue on a store, where two are at it at once, or many items stand in the way. On a fake
// clock.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <utility>

#include "base/text.h"
#include "os/random.h"
#include "service/queue_service.h"
#include "service/store_life.h"
#include "store/memory/memory_store.h"
#include "tests/conformance/meanwhile.h"
#include "tests/conformance/stores.h"
#include "tests/support/queue_asks.h"

namespace stint::test {
namespace {

using What = core::ItemOrder::What;
constexpr Millis kLong{3'600'000};

// Something happens before the first look at a list.
class BeforeScan final : public store::SharedStore {
 public:
  BeforeScan(std::shared_ptr<store::Store> store, std::function<void()> what)
      : SharedStore(std::move(store)), what_(std::move(what)) {}
  Result<store::Reading> scan(const ScanRange& range) override {
    if (what_) std::exchange(what_, {})();
    return SharedStore::scan(range);
  }

 private:
  std::function<void()> what_;
};

class QueueServiceTest : public ::testing::Test {
 protected:
  QueueServiceTest() {
    EXPECT_TRUE(service::begin_life(*memory_, random_, clock_.wall(), nullptr, {}));
  }
  static core::QueueName jobs() { return core::QueueName::parse("jobs").value(); }
  static core::ItemLimits limits(Millis progress_timeout = {}) {
    core::ItemLimits limits;
    limits.requeue = core::Requeue::Always;
    limits.max_attempts = 100;
    limits.progress_timeout = progress_timeout;
    return limits;
  }
  core::ItemId put(const std::string& payload = "x", const core::ItemLimits& with = limits()) {
    return queue_.put(put_request(jobs(), payload, with)).value().id;
  }
  api::ClaimRequest under_key(std::string key) {
    return {.queue = jobs(),
            .owner = Owner::parse("ann").value(),
            .claim = Claim::make(random_),
            .ttl = kLong,
            .start = false,
            .reports = false,
            .once = api::Once{.key = std::move(key), .digest = "d"}};
  }
  std::optional<api::ClaimedItem> claim_by(api::Queue& queue, Millis ttl = kLong) {
    auto answer = queue.claim({.queue = jobs(),
                               .owner = Owner::parse("ann").value(),
                               .claim = Claim::make(random_),
                               .ttl = ttl,
                               .start = true,
                               .reports = true});
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer || std::holds_alternative<api::EmptyQueue>(*answer)) return std::nullopt;
    return std::get<api::ClaimedItem>(*answer);
  }
  static bool done(const Result<api::ItemAnswer>& answer) {
    return answer.has_value() && std::holds_alternative<api::ItemDone>(*answer);
  }
  static api::Completion completion(const api::ItemRef& ref, char letter) {
    const std::string large(60'000, letter);
    api::Completion out{.ref = ref, .result = large, .then = {}};
    for (int i = 0; i < 5; ++i) out.then.push_back({jobs(), large});
    return out;
  }
  std::size_t blobs() {
    return memory_->scan({.prefix = "blob/", .after = "", .limit = 10'000, .backwards = false})
        ->entries.size();
  }

  testing::FakeClock clock_;
  os::SystemRandom random_;
  std::shared_ptr<store::MemoryStore> memory_ = std::make_shared<store::MemoryStore>(clock_);
  service::Ledger ledger_{*memory_, clock_, 10'000};
  service::QueueService queue_{*memory_, ledger_, clock_, random_};
};

// Both have seen the claim; what the one writes ahead of its commit comes after the other's.
// EVIDENCE-OF: G8 G10
TEST_F(QueueServiceTest, ARefusedCompletionLeavesTheAcceptedResultAsItIs) {
  const auto id = put();
  const auto mine = claim_by(queue_);
  ASSERT_TRUE(mine);
  const api::ItemRef ref{id, mine->item.item.epoch};
  testing::Meanwhile store(memory_);
  service::QueueService other(store, ledger_, clock_, random_);
  std::size_t accepted = 0;
  store.before_commit([&] {
    EXPECT_TRUE(done(queue_.complete(completion(ref, 'a'))));
    accepted = blobs();
  });
  const auto answer = other.complete(completion(ref, 'b'));
  ASSERT_TRUE(answer.has_value());
  ASSERT_TRUE(std::holds_alternative<api::ItemLost>(*answer));
  EXPECT_EQ(queue_.show(id).value()->result, std::string(60'000, 'a'));
  EXPECT_GT(accepted, 0U);
  EXPECT_EQ(blobs(), accepted) << "what the refused one wrote ahead is left behind";
}

// A worker that died between the two leaves its result behind, until the next one completes.
TEST_F(QueueServiceTest, AResultThatNobodyNamedIsSweptByTheNextCompletion) {
  const auto id = put();
  const auto first = claim_by(queue_, Millis(1000));
  ASSERT_TRUE(first);
  store::Step left;
  left.kind = store::Step::Kind::Set;
  left.key = service::blob_key(id, "r1-left", 0);
  left.value = "AAAA";
  ASSERT_TRUE(memory_->commit({left}, store::Sync::Relaxed));
  store::Step later = left;
  later.key = service::blob_key(id, "r9-later", 0);
  ASSERT_TRUE(memory_->commit({later}, store::Sync::Relaxed));
  clock_.advance(Millis(1001));
  const auto second = claim_by(queue_);
  ASSERT_TRUE(second);
  ASSERT_TRUE(done(queue_.complete(completion({id, second->item.item.epoch}, 'a'))));
  EXPECT_FALSE(memory_->read({left.key})->entries.front().present());
  EXPECT_TRUE(memory_->read({later.key})->entries.front().present()) << "a later epoch's";
  EXPECT_EQ(queue_.show(id).value()->result, std::string(60'000, 'a'));
}

// As a page of others hides it: claims that run for long, reservations that stand.
TEST_F(QueueServiceTest, TheJanitorFindsALapsedReservationBehindManyThatStand) {
  core::ItemOrder order{.what = What::Reassign,
                        .expected = {},
                        .why = "w",
                        .by = "op",
                        .id = {},
                        .to = {},
                        .hold = {}};
  const auto reserve = [&](std::string_view owner, Millis hold) {
    order.to = Owner::parse(owner).value();
    order.hold = hold;
    const auto id = put();
    EXPECT_TRUE(done(queue_.order(id, order)));
    return id;
  };
  for (int i = 0; i < 40; ++i) reserve("aaa", kLong);
  const auto lapsed = reserve("zzz", Millis(1000));
  EXPECT_FALSE(claim_by(queue_));
  clock_.advance(Millis(1001));
  const auto mine = claim_by(queue_);
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.id, lapsed);
  EXPECT_FALSE(claim_by(queue_));
}

// Also by a process that was started for this one claim, and has looked at nothing before.
TEST_F(QueueServiceTest, TheJanitorFindsAStalledClaimBehindManyThatGoOn) {
  for (int i = 0; i < 260; ++i) {
    put("x", limits(kLong));
    ASSERT_TRUE(claim_by(queue_));
  }
  const auto wedged = put("w", limits(Millis(1000)));
  ASSERT_TRUE(claim_by(queue_));
  clock_.advance(Millis(1001));
  service::QueueService other(*memory_, ledger_, clock_, random_);
  const auto mine = claim_by(other);
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.id, wedged);
}

// Nobody who asks under one key is told "nothing" once that key has claimed.
TEST_F(QueueServiceTest, ManyClaimsAtOnceUnderOneKeyAreOneClaim) {
  for (int round = 0; round < 20; ++round) {
    const auto id = put();
    const api::ClaimRequest request = under_key(cat("a", round));
    std::atomic<int> given = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        auto answer = queue_.claim(request);
        const auto* got = answer ? std::get_if<api::ClaimedItem>(&*answer) : nullptr;
        if (got != nullptr && got->item.id == id) ++given;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(given, 8);
  }
}

// The same, played: the key claims in another process between the look for the key and the look at
// the items.
TEST_F(QueueServiceTest, AKeyThatHasClaimedMeanwhileIsFound) {
  const auto id = put();
  const api::ClaimRequest request = under_key("ab");
  BeforeScan store(memory_, [&] { ASSERT_TRUE(queue_.claim(request)); });
  service::QueueService other(store, ledger_, clock_, random_);
  const auto answer = other.claim(request);
  ASSERT_TRUE(answer.has_value());
  const auto* got = std::get_if<api::ClaimedItem>(&*answer);
  ASSERT_NE(got, nullptr) << "it was told that there is nothing";
  EXPECT_EQ(got->item.id, id);
  EXPECT_TRUE(got->replayed);
}

}  // namespace
}  // namespace stint::test
