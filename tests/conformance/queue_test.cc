// The queue on every store: putting, claiming, the worker's verbs.
#include <algorithm>
#include <thread>

#include "os/clock.h"
#include "os/pause.h"
#include "tests/conformance/queue_fixture.h"

namespace stint::testing {
namespace {

using core::ItemCause;
using core::ItemState;
using What = core::ItemOrder::What;

class QueueVerbs : public QueueTest {};
STINT_QUEUES_ON_EVERY_STORE(QueueVerbs);

TEST_P(QueueVerbs, AnItemIsPutClaimedStartedAndCompleted) {
  const auto id = put("hello");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.id, id);
  EXPECT_EQ(mine->item.payload, "hello");
  EXPECT_EQ(mine->item.item.epoch, Token(1));
  EXPECT_EQ(mine->item.item.attempts, 1U);
  EXPECT_FALSE(claim("bob"));  // it is taken, and there is no other
  EXPECT_TRUE(done(queue_.start(ref(*mine), false)));
  EXPECT_TRUE(done(queue_.renew(ref(*mine), kHour)));
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  EXPECT_EQ(state(id), ItemState::Done);
  EXPECT_EQ(show(id).result, "ok");
  EXPECT_EQ(kinds(id), (std::vector<std::string>{"item_claimed", "item_completed"}));
}

TEST_P(QueueVerbs, ARepeatIsAnsweredDoneAndAnythingElseIsNot) {
  put("x");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine), "a"))));
  EXPECT_TRUE(repeated(queue_.complete(completion(ref(*mine), "a"))));
  EXPECT_EQ(lost(queue_.complete(completion(ref(*mine), "b"))), ItemCause::Spoken);
  EXPECT_EQ(lost(queue_.fail(ref(*mine), "no", {})), ItemCause::Spoken);
  EXPECT_EQ(show(mine->item.id).result, "a");
}

TEST_P(QueueVerbs, HigherPrioritiesFirstThenInOrder) {
  put("first");
  put("second");
  auto urgent = request("urgent");
  urgent.priority = 5;
  ASSERT_TRUE(queue_.put(urgent));
  auto idle = request("idle");
  idle.priority = -5;
  ASSERT_TRUE(queue_.put(idle));
  std::vector<std::string> order;
  while (auto next = claim()) order.push_back(next->item.payload.value());
  EXPECT_EQ(order, (std::vector<std::string>{"urgent", "first", "second", "idle"}));
}

TEST_P(QueueVerbs, AUniqueKeyIsGivenOnce) {
  auto one = request("a");
  one.unique = "nightly";
  const auto first = queue_.put(one).value();
  const auto second = queue_.put(one).value();
  EXPECT_FALSE(first.existed);
  EXPECT_TRUE(second.existed);
  EXPECT_EQ(first.id, second.id);
  EXPECT_EQ(waiting("builds"), 1U);
  ASSERT_TRUE(done(queue_.order(first.id, order(What::Drop))));
  EXPECT_FALSE(queue_.put(one).value().existed);
}

TEST_P(QueueVerbs, ContentsUpTo64KiBComeBackWhole) {
  std::string large(api::kMostContentBytes, 'x');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 + i / 256);
  const auto id = put(large);
  auto mine = claim("ann", brief());
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.payload, large);
  EXPECT_TRUE(done(queue_.checkpoint(ref(*mine), "half", large)));
  EXPECT_TRUE(done(queue_.checkpoint(ref(*mine), "more", large.substr(5))));
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine), large.substr(1)))));
  const api::QueueItem item = show(id);
  EXPECT_EQ(item.checkpoint, large.substr(5));
  EXPECT_EQ(item.result, large.substr(1));
  // Nothing is left of it when it is dropped.
  ASSERT_TRUE(done(queue_.order(id, order(What::Drop))));
  const auto left = client_.base.store->scan({service::blob_prefix(id), "", 10, false}).value();
  EXPECT_EQ(left.entries.size(), 0U);
  EXPECT_FALSE(queue_.show(id).value());
}

TEST_P(QueueVerbs, NotBeforeItsTime) {
  auto later = request("later");
  later.delay = brief();
  const auto id = queue_.put(later).value().id;
  EXPECT_FALSE(claim());
  EXPECT_EQ(state(id), ItemState::Waiting);
  EXPECT_TRUE(show(id).not_before);
  std::optional<api::ClaimedItem> mine;
  EXPECT_TRUE(site_->eventually([&] { return (mine = claim()).has_value(); }));
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.id, id);
}

TEST_P(QueueVerbs, AFailureWaitsForItsBackoffThenFailsForGood) {
  core::ItemLimits limits;
  limits.max_attempts = 2;
  limits.backoff = Millis(1);
  const auto id = put("x", limits);
  auto mine = claim();
  ASSERT_TRUE(mine);
  EXPECT_TRUE(done(queue_.fail(ref(*mine), "broken", {})));
  EXPECT_TRUE(repeated(queue_.fail(ref(*mine), "broken", {})));
  EXPECT_EQ(state(id), ItemState::Waiting);
  EXPECT_TRUE(site_->eventually([&] { return (mine = claim()).has_value(); }));
  EXPECT_EQ(mine->item.item.attempts, 2U);
  EXPECT_TRUE(done(queue_.fail(ref(*mine), "broken again", {})));
  EXPECT_EQ(state(id), ItemState::Failed);
  EXPECT_EQ(show(id).item.why, "broken again");
}

TEST_P(QueueVerbs, LaterAndReleaseUseUpNoAttempt) {
  core::ItemLimits limits;
  limits.max_attempts = 1;
  const auto id = put("x", limits);
  for (int i = 0; i < 3; ++i) {
    std::optional<api::ClaimedItem> mine;
    EXPECT_TRUE(site_->eventually([&] { return (mine = claim()).has_value(); }));
    ASSERT_TRUE(mine);
    EXPECT_EQ(mine->item.item.attempts, 1U);
    EXPECT_EQ(mine->item.item.epoch, Token(static_cast<std::uint64_t>(i) + 1));
    EXPECT_TRUE(
        done(i == 0 ? queue_.release(ref(*mine)) : queue_.fail(ref(*mine), "busy", Millis(1))));
  }
  EXPECT_EQ(state(id), ItemState::Waiting);
}

// ---- follow-ups

// EVIDENCE-OF: G10
TEST_P(QueueVerbs, FollowUpsComeWithTheCompletionOrNotAtAll) {
  ASSERT_TRUE(queue_.configure({queue_name("deploys"), {}}));
  core::ItemLimits limits;
  limits.requeue = core::Requeue::Always;
  put("x", limits);
  const auto stale = claim("ann", brief());
  ASSERT_TRUE(stale);
  std::optional<api::ClaimedItem> mine;
  EXPECT_TRUE(site_->eventually([&] { return (mine = claim("bob")).has_value(); }));
  ASSERT_TRUE(mine);
  api::Completion fan{.ref = ref(*stale), .result = "r", .then = {}};
  for (std::size_t i = 0; i < api::kMostFollowUps; ++i) {
    fan.then.push_back({queue_name("deploys"), "next " + std::to_string(i)});
  }
  EXPECT_EQ(lost(queue_.complete(fan)), ItemCause::Superseded);
  EXPECT_EQ(waiting("deploys"), 0U);
  fan.ref = ref(*mine);
  const auto answer = queue_.complete(fan);
  ASSERT_TRUE(done(answer));
  EXPECT_EQ(std::get<api::ItemDone>(*answer).follow_ups.size(), api::kMostFollowUps);
  EXPECT_TRUE(repeated(queue_.complete(fan)));
  EXPECT_EQ(waiting("deploys"), api::kMostFollowUps);
  const auto next = claim("ann", kHour, "deploys");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->item.payload, "next 0");
  EXPECT_EQ(next->item.parent, mine->item.id.text());
}

TEST_P(QueueVerbs, LargeFollowUpsAreWrittenAheadAndNamedAtOnce) {
  put("x");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  const std::string large(60'000, 'z');
  api::Completion fan{.ref = ref(*mine), .result = large, .then = {}};
  for (int i = 0; i < 5; ++i) fan.then.push_back({queue_name("builds"), large});
  ASSERT_TRUE(done(queue_.complete(fan)));
  int found = 0;
  while (auto next = claim()) found += next->item.payload == large ? 1 : 0;
  EXPECT_EQ(found, 5);
  EXPECT_EQ(show(mine->item.id).result, large);
}

// ---- bad input: clear error, nothing changed

TEST_P(QueueVerbs, BadInputChangesNothing) {
  const auto id = put("x");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  const std::string before = whole(id);
  const std::string huge(api::kMostContentBytes + 1, 'x');
  const auto code = [](const auto& answer) {
    return answer.has_value() ? Code::Failed : answer.error().code;
  };
  EXPECT_EQ(code(queue_.put(request(huge))), Code::Invalid);
  auto unknown = request("x", {}, "nowhere");
  unknown.create = false;
  EXPECT_EQ(code(queue_.put(unknown)), Code::Invalid);
  EXPECT_EQ(code(queue_.claim({queue_name("nowhere"), owner("a"), client_.base.claim()})),
            Code::Invalid);
  const api::ItemRef zero{id, Token()};
  EXPECT_EQ(code(queue_.complete(completion(zero))), Code::Invalid);
  EXPECT_EQ(code(queue_.renew(zero, kHour)), Code::Invalid);
  EXPECT_EQ(code(queue_.checkpoint(ref(*mine), "m", huge)), Code::Invalid);
  EXPECT_EQ(code(queue_.complete(completion(ref(*mine), huge))), Code::Invalid);
  api::Completion fan = completion(ref(*mine));
  const api::FollowUp known{queue_name("builds"), ""};
  for (std::size_t i = 0; i <= api::kMostFollowUps; ++i) fan.then.push_back(known);
  EXPECT_EQ(code(queue_.complete(fan)), Code::Invalid);
  const api::FollowUp lost_one{queue_name("nowhere"), ""};
  fan.then.clear();
  fan.then.push_back(lost_one);
  EXPECT_EQ(code(queue_.complete(fan)), Code::Invalid);
  core::ItemOrder silent = order(What::Park, mine->item.item.epoch);
  silent.why.clear();
  EXPECT_EQ(code(queue_.order(id, silent)), Code::Invalid);
  EXPECT_EQ(code(queue_.order(id, order(What::Park, Token()))), Code::Invalid);
  // The right letters, but of another queue: there is no such item.
  const auto other = core::ItemId::parse("other-" + id.suffix()).value();
  EXPECT_EQ(lost(queue_.complete(completion({other, Token(1)}))), ItemCause::NotThere);
  EXPECT_EQ(whole(id), before);
}

// beads#4657: eight at once under one name.
TEST_P(QueueVerbs, EightClaimsAtOnceUnderOneNameGetOneGrant) {
  put("only one");
  std::vector<std::unique_ptr<QueueClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<QueueClient>(*site_));
  std::atomic<int> grants = 0;
  std::vector<std::thread> threads;
  for (auto& client : clients) {
    threads.emplace_back([&] {
      if (claim_by(client->queue, "same-name")) ++grants;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(grants, 1);
}

TEST_P(QueueVerbs, ManyWorkersGetEveryItemOnce) {
  constexpr int kItems = 60;
  for (int i = 0; i < kItems; ++i) put(std::to_string(i));
  QueueClient other(*site_);
  Mutex mutex;
  std::vector<std::string> got;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      api::Queue& mine = i % 2 == 0 ? static_cast<api::Queue&>(queue_) : other.queue;
      while (auto next = claim_by(mine, "worker")) {
        EXPECT_TRUE(done(mine.complete(completion(ref(*next)))));
        const MutexLock lock(mutex);
        got.push_back(next->item.payload.value());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::ranges::sort(got);
  EXPECT_EQ(std::unique(got.begin(), got.end()), got.end());
  EXPECT_EQ(got.size(), static_cast<std::size_t>(kItems));
}

// A worker that found nothing sleeps until something is put, also by another process.
TEST_P(QueueVerbs, APutWakesWhoSaidThatItWouldWait) {
  ASSERT_TRUE(queue_.configure({queue_name("builds"), {}}));
  auto watch = queue_.watch(queue_name("builds"));
  ASSERT_TRUE(watch);
  (*watch)->acknowledge();
  const auto nothing = queue_.claim({.queue = queue_name("builds"),
                                     .owner = owner("ann"),
                                     .claim = client_.base.claim(),
                                     .will_wait = true});
  ASSERT_TRUE(nothing.has_value());
  ASSERT_TRUE(std::holds_alternative<api::EmptyQueue>(*nothing));
  (*watch)->acknowledge();
  QueueClient other(*site_);
  ASSERT_TRUE(other.queue.put(request("x")));
  // Said as bool: what front() gives is a proxy into a vector that is gone.
  const auto woken = [&]() -> bool {
    return os::wait_readable({(*watch)->fd()}, os::SystemClock().mono() + Millis(20)).front();
  };
  EXPECT_TRUE(site_->eventually(woken));
  EXPECT_TRUE(claim());
}

}  // namespace
}  // namespace stint::testing
