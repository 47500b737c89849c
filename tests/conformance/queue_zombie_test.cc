// Stale workers, the janitor and the operator on every store: what went wrong elsewhere, tried
// here.
#include <algorithm>
#include <functional>
#include <utility>

#include "tests/conformance/meanwhile.h"
#include "tests/conformance/queue_fixture.h"

namespace stint::testing {
namespace {

using core::ItemCause;
using core::ItemState;
using What = core::ItemOrder::What;

class QueueZombies : public QueueTest {
 protected:
  static core::ItemLimits always() {
    core::ItemLimits limits;
    limits.requeue = core::Requeue::Always;
    limits.max_attempts = 100;
    return limits;
  }
  // The next claim, once the one before has run out.
  std::optional<api::ClaimedItem> claim_after_expiry(std::string_view who, Millis ttl = kHour) {
    std::optional<api::ClaimedItem> next;
    EXPECT_TRUE(site_->eventually([&] { return (next = claim(who, ttl)).has_value(); }));
    return next;
  }
  bool wait_for(const core::ItemId& id, ItemState wanted) {
    return site_->eventually([&] {
      EXPECT_TRUE(queue_.tend(queue_name("builds")));
      return state(id) == wanted;
    });
  }
};
STINT_QUEUES_ON_EVERY_STORE(QueueZombies);

// oban#1496: for each verb a stale epoch is tried; the row is unchanged.
// EVIDENCE-OF: G8 G10
TEST_P(QueueZombies, EveryVerbOfAStaleEpochLeavesTheRecordAsItIs) {
  const auto id = put("x", always());
  const auto zombie = claim("zombie", brief());
  ASSERT_TRUE(zombie);
  const auto mine = claim_after_expiry("ann");
  ASSERT_TRUE(mine);
  ASSERT_TRUE(done(queue_.start(ref(*mine), false)));
  const std::string before = whole(id);
  for (const Token epoch : {zombie->item.item.epoch, Token(mine->item.item.epoch.number() + 1)}) {
    const api::ItemRef old{id, epoch};
    const ItemCause cause =
        epoch < mine->item.item.epoch ? ItemCause::Superseded : ItemCause::NeverIssued;
    EXPECT_EQ(lost(queue_.start(old, true)), cause);
    EXPECT_EQ(lost(queue_.renew(old, kHour)), cause);
    EXPECT_EQ(lost(queue_.checkpoint(old, "m", "data")), cause);
    EXPECT_EQ(lost(queue_.complete(completion(old))), cause);
    EXPECT_EQ(lost(queue_.fail(old, "w", {})), cause);
    EXPECT_EQ(lost(queue_.fail(old, "w", Millis(1))), cause);
    EXPECT_EQ(lost(queue_.release(old)), cause);
    for (const What what : {What::Park, What::Requeue, What::Reassign, What::Cancel, What::Drop}) {
      EXPECT_EQ(lost(queue_.order(id, order(what, epoch))), ItemCause::WrongEpoch);
    }
    EXPECT_EQ(whole(id), before);
  }
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  // Each of them is on record: a line for the first, the others counted.
  const auto said = kinds(id);
  EXPECT_TRUE(std::ranges::find(said, "item_refused_stale") != said.end());
  EXPECT_GE(client_.local->traffic().stale, 14U);
}

// river#1302: the janitor decides, a completion lands, the janitor writes. Both orders.
// EVIDENCE-OF: G8
TEST_P(QueueZombies, AJanitorThatComesLateFindsTheCompletion) {
  const auto id = put("x", always());
  const auto mine = claim("ann", brief());
  ASSERT_TRUE(mine);
  // Late but not superseded: the claim ran out, nobody has settled it.
  EXPECT_TRUE(site_->eventually([&] { return !show(id).live; }));
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  const auto tended = queue_.tend(queue_name("builds"));
  ASSERT_TRUE(tended);
  EXPECT_EQ(tended->requeued + tended->parked, 0U);
  EXPECT_EQ(state(id), ItemState::Done);
}

// The same in one breath: between what the janitor read and what it writes.
// EVIDENCE-OF: G8
TEST_P(QueueZombies, ACompletionBetweenTheJanitorsLookAndItsWriteStands) {
  SKIP_FILES();
  const auto id = put("x", always());
  const auto mine = claim("ann", brief());
  ASSERT_TRUE(mine);
  EXPECT_TRUE(site_->eventually([&] { return !show(id).live; }));
  Meanwhile store(site_->open());
  service::QueueService janitor(store, client_.base.ledger, site_->clock(), client_.base.random);
  int landed = 0;
  store.before_commit([&] { landed += done(queue_.complete(completion(ref(*mine)))) ? 1 : 0; });
  std::size_t moved = 0;
  // Another opening's clock may be a little behind.
  EXPECT_TRUE(site_->eventually([&] {
    const auto tended = janitor.tend(queue_name("builds"));
    if (tended) moved += tended->requeued + tended->parked;
    return landed == 1;
  })) << "the janitor wrote nothing: it was not tried";
  EXPECT_EQ(moved, 0U);
  EXPECT_EQ(state(id), ItemState::Done);
}

TEST_P(QueueZombies, ALateResultCountsUntilSomebodyClaims) {
  const auto id = put("x");  // if-no-progress
  auto mine = claim("ann", brief());
  ASSERT_TRUE(mine);
  ASSERT_TRUE(done(queue_.start(ref(*mine), false)));
  ASSERT_TRUE(wait_for(id, ItemState::Parked));  // started, and nobody knows how far it came
  EXPECT_EQ(show(id).item.epoch, mine->item.item.epoch);
  EXPECT_EQ(show(id).item.by, "janitor");
  EXPECT_EQ(lost(queue_.renew(ref(*mine), kHour)), ItemCause::Expired);
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  EXPECT_EQ(state(id), ItemState::Done);
}

TEST_P(QueueZombies, WhatWasNeverStartedIsRunAgain) {
  const auto id = put("x");
  ASSERT_TRUE(claim("ann", brief()));
  const auto next = claim_after_expiry("bob");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->item.id, id);
  EXPECT_EQ(next->item.item.epoch, Token(2));
  EXPECT_EQ(next->item.item.reason, core::Reason::Expired);
}

// aegra#547: a zombie's heartbeat does not prolong its successor.
// EVIDENCE-OF: G8
TEST_P(QueueZombies, AZombiesHeartbeatDoesNotProlongItsSuccessor) {
  const auto id = put("x", always());
  const auto zombie = claim("zombie", brief());
  ASSERT_TRUE(zombie);
  const auto mine = claim_after_expiry("ann", brief());
  ASSERT_TRUE(mine);
  EXPECT_TRUE(site_->eventually([&] {
    EXPECT_EQ(lost(queue_.renew(ref(*zombie), kHour)), ItemCause::Superseded);
    return !show(id).live;
  }));
}

// EVIDENCE-OF: G3
TEST_P(QueueZombies, AClaimThatRunsOutBetweenTheLookAndTheWriteIsNotRenewed) {
  SKIP_FILES();
  const auto id = put("x", always());
  const auto mine = claim("ann", brief());
  ASSERT_TRUE(mine);
  Meanwhile store(site_->open());
  service::QueueService late(store, client_.base.ledger, site_->clock(), client_.base.random);
  store.before_commit([&] { EXPECT_TRUE(site_->eventually([&] { return !show(id).live; })); });
  EXPECT_EQ(lost(late.renew(ref(*mine), kHour)), ItemCause::Expired);
  EXPECT_FALSE(show(id).live);
}

// A read that says no does not say that it was always so.
// EVIDENCE-OF: G10
TEST_P(QueueZombies, ACompletionWithoutAnAnswerStaysUnknownWhenTheItemHasMovedOn) {
  SKIP_FILES();
  const auto id = put("x", always());
  const auto mine = claim();
  ASSERT_TRUE(mine);
  Meanwhile store(site_->open());
  service::QueueService late(store, client_.base.ledger, site_->clock(), client_.base.random);
  store.lose_commit(
      [&] { EXPECT_TRUE(done(queue_.order(id, order(What::Requeue, mine->item.item.epoch)))); });
  const auto answer = late.complete(completion(ref(*mine)));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::UnknownOutcome) << answer.error().message;
}

// eliza#10854: one attempt means one, also for the janitor, whatever the policy.
TEST_P(QueueZombies, TheJanitorHonoursOneAttempt) {
  core::ItemLimits limits = always();
  limits.max_attempts = 1;
  const auto id = put("x", limits);
  ASSERT_TRUE(claim("ann", brief()));
  EXPECT_TRUE(wait_for(id, ItemState::Parked));
  EXPECT_FALSE(claim("bob"));
  EXPECT_NE(show(id).item.why.find("attempts"), std::string::npos);
  const auto said = kinds(id);
  EXPECT_EQ(said, (std::vector<std::string>{"item_claimed", "item_parked"}));
}

// A wedged worker: heartbeats go on, nothing moves.
TEST_P(QueueZombies, NoProgressEndsAClaimAndTheSuccessorGetsTheCheckpoint) {
  core::ItemLimits limits = always();
  limits.progress_timeout = brief() * 2;
  const auto id = put("x", limits);
  const auto wedged = claim("wedged");
  ASSERT_TRUE(wedged);
  ASSERT_TRUE(done(queue_.start(ref(*wedged), true)));
  ASSERT_TRUE(done(queue_.checkpoint(ref(*wedged), "page 40", "state of page 40")));
  EXPECT_TRUE(site_->eventually(
      [&] { return lost(queue_.renew(ref(*wedged), kHour)) == ItemCause::Stalled; }));
  const auto next = claim_after_expiry("ann");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->item.item.reason, core::Reason::Stalled);
  EXPECT_EQ(next->item.item.progress, "page 40");
  EXPECT_EQ(next->item.checkpoint, "state of page 40");
  EXPECT_EQ(lost(queue_.complete(completion(ref(*wedged)))), ItemCause::Superseded);
  EXPECT_TRUE(done(queue_.complete(completion(ref(*next)))));
  EXPECT_EQ(state(id), ItemState::Done);
}

// What waits for something else before it begins is not wedged. Whoever claims without a word about
// its start is watched from the claim on.
TEST_P(QueueZombies, AClaimThatStartsLaterStallsOnlyOnceItHasStarted) {
  core::ItemLimits limits = always();
  limits.progress_timeout = brief() * 2;
  const auto id = put("x", limits);
  const auto answer = queue_.claim({.queue = queue_name("builds"),
                                    .owner = owner("ann"),
                                    .claim = client_.base.claim(),
                                    .ttl = kHour,
                                    .starts_later = true});
  ASSERT_TRUE(answer.has_value());
  ASSERT_TRUE(std::holds_alternative<api::ClaimedItem>(*answer));
  const api::ItemRef mine = ref(std::get<api::ClaimedItem>(*answer));
  put("y", limits);
  const auto plain = claim("bob");
  ASSERT_TRUE(plain);
  EXPECT_TRUE(site_->eventually(
      [&] { return lost(queue_.renew(ref(*plain), kHour)) == ItemCause::Stalled; }));
  // The other one is older.
  ASSERT_TRUE(queue_.tend(queue_name("builds")));
  EXPECT_EQ(state(plain->item.id), ItemState::Waiting);
  EXPECT_EQ(state(id), ItemState::Claimed);
  EXPECT_TRUE(done(queue_.renew(mine, kHour)));
  ASSERT_TRUE(done(queue_.start(mine, false)));
  EXPECT_TRUE(
      site_->eventually([&] { return lost(queue_.renew(mine, kHour)) == ItemCause::Stalled; }));
  EXPECT_TRUE(wait_for(id, ItemState::Waiting));
  EXPECT_EQ(show(id).item.attempts, 1U);
}

// ---- the operator

// EVIDENCE-OF: G8
TEST_P(QueueZombies, AnOperatorNamesTheEpochOfALiveClaimAndThenTheWorkerHasLost) {
  for (const What what : {What::Park, What::Requeue, What::Cancel, What::Reassign}) {
    const auto id = put("x", {}, "ops");
    const auto mine = claim("ann", kHour, "ops");
    ASSERT_TRUE(mine);
    auto stopped = queue_.watch_item(id);
    ASSERT_TRUE(stopped);
    const std::string before = whole(id);
    EXPECT_EQ(lost(queue_.order(id, order(what))), ItemCause::Live);
    EXPECT_EQ(whole(id), before);
    ASSERT_TRUE(done(queue_.order(id, order(what, mine->item.item.epoch))));
    EXPECT_EQ(lost(queue_.renew(ref(*mine), kHour)), ItemCause::Ordered);
    EXPECT_EQ(lost(queue_.complete(completion(ref(*mine)))), ItemCause::Ordered);
    // Nor does the operator's own epoch belong to any worker.
    EXPECT_EQ(lost(queue_.complete(completion({id, mine->item.item.epoch.next()}))),
              ItemCause::NeverIssued);
    const api::QueueItem item = show(id);
    EXPECT_EQ(item.item.why, "because");
    EXPECT_EQ(item.item.by, "op");
    EXPECT_EQ(item.item.epoch, Token(2));
    ASSERT_TRUE(done(queue_.order(id, order(What::Drop))));
  }
}

TEST_P(QueueZombies, ReassignIsForOneOwnerUntilItLapses) {
  const auto id = put("x");
  core::ItemOrder to_bob = order(What::Reassign);
  to_bob.to = owner("bob");
  to_bob.hold = kHour;
  ASSERT_TRUE(done(queue_.order(id, to_bob)));
  EXPECT_FALSE(claim("ann"));
  QueueClient other(*site_);
  const auto mine = claim_by(other.queue, "bob");
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.item.reason, core::Reason::TakenUp);
  core::ItemOrder to_carl = order(What::Reassign, mine->item.item.epoch);
  to_carl.to = owner("carl");
  to_carl.hold = brief();
  ASSERT_TRUE(done(queue_.order(id, to_carl)));
  const auto next = claim_after_expiry("ann");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->item.id, id);
}

// EVIDENCE-OF: G10
TEST_P(QueueZombies, OnlyAReplayOpensACompletedItem) {
  const auto id = put("x");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  ASSERT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  for (const What what : {What::Park, What::Requeue, What::Reassign, What::Cancel}) {
    EXPECT_EQ(lost(queue_.order(id, order(what))), ItemCause::Finished);
  }
  ASSERT_TRUE(done(queue_.order(id, order(What::Replay))));
  EXPECT_EQ(lost(queue_.complete(completion(ref(*mine)))), ItemCause::Ordered);
  const auto again = claim("bob");
  ASSERT_TRUE(again);
  EXPECT_GT(again->item.item.epoch, mine->item.item.epoch);
  EXPECT_TRUE(done(queue_.complete(completion(ref(*again), "second"))));
}

}  // namespace
}  // namespace stint::testing
