// Scheduled slots on every store: each is decided once, each step is fenced by the lease.
#include <algorithm>
#include <atomic>
#include <thread>

#include "service/slot_service.h"
#include "service/store_move.h"
#include "tests/conformance/lease_fixture.h"
#include "tests/conformance/meanwhile.h"

namespace stint::testing {
namespace {

core::JobRule every_second(std::size_t max_backfill = 3) {
  core::JobRule rule;
  rule.name = "job";
  rule.schedule = "* * * * * *";
  rule.expression = core::parse_cron(rule.schedule).value();
  rule.digest = core::schedule_digest(rule.schedule, "UTC");
  rule.max_backfill = max_backfill;
  return rule;
}

// One scheduler's way to the store; where the site is served, over HTTP.
class SlotClient {
 public:
  SlotClient(Site& site, Client& client)
      : local(*client.store, client.ledger, site.clock()),
        served(site.served()
                   ? serve({client.local, client.local_fences, client.ledger, nullptr, &local},
                           client.random, site.clock())
                   : nullptr),
        slots(served ? served->slots() : static_cast<api::Slots&>(local)) {}

  service::SlotService local;
  std::unique_ptr<Served> served;
  api::Slots& slots;
};

class SlotsTest : public LeaseTest {
 protected:
  api::Decided decide(api::Slots& slots, const std::string& who) {
    auto answer = slots.decide({{.rule = &rule_}}, who);
    EXPECT_TRUE(answer.front().has_value()) << answer.front().error().message;
    return std::move(*answer.front());
  }
  // Until something is due, and the scheduler's to start.
  core::Slot due(const std::string& who) {
    std::optional<core::Slot> found;
    EXPECT_TRUE(site_->eventually([&] {
      const api::Decided decided = decide(slots_, who);
      if (decided.mine) found = decided.job.due.front();
      return found.has_value();
    }));
    return found.value_or(core::Slot{});
  }
  // Without waiting for the next second.
  core::Slot due_by_hand(const std::string& who) {
    core::Slot slot{.at = core::wall_of(core::whole_seconds(slots_.now().value()))};
    const auto added = slots_.add(rule_, slot, who);
    EXPECT_TRUE(added && added->what == api::SlotAdded::What::Added);
    return slot;
  }
  api::SlotProof proof(const core::Slot& slot, const std::string& who, const Grant& grant) {
    return {.job = "job",
            .at = slot.at,
            .attempt = slot.attempt,
            .scheduler = who,
            .owner = owner("ann"),
            .grip = grant.grip};
  }

  core::JobRule rule_ = every_second();
  SlotClient scheduler_{*site_, client_};
  api::Slots& slots_ = scheduler_.slots;
};

// EVIDENCE-OF: G9
TEST_P(SlotsTest, OfTwoSchedulersOneStartsASlot) {
  Client other(*site_);
  SlotClient other_scheduler(*site_, other);
  api::Slots& others = other_scheduler.slots;
  decide(slots_, "a");
  const core::Slot slot = due("a");
  const api::Decided second = decide(others, "b");
  EXPECT_FALSE(second.mine);
  EXPECT_EQ(second.job.due_by, "a");
  const Grant grant = acquire("r");
  EXPECT_EQ(others.claim(proof(slot, "b", grant)).value(), api::StepAnswer::Gone);
  EXPECT_EQ(slots_.claim(proof(slot, "a", grant)).value(), api::StepAnswer::Done);
  EXPECT_EQ(slots_.claim(proof(slot, "a", grant)).value(), api::StepAnswer::Done);  // again
}

// Told to stop between its note that it starts and the start: the attempt is still to be had.
// EVIDENCE-OF: G9
TEST_P(SlotsTest, WhatWasNotStartedAfterAllIsDueAgainAsTheSameAttempt) {
  decide(slots_, "a");
  const core::Slot slot = due_by_hand("a");
  const Grant grant = acquire("r");
  const api::SlotProof mine = proof(slot, "a", grant);
  ASSERT_EQ(slots_.claim(mine).value(), api::StepAnswer::Done);
  ASSERT_EQ(slots_.start(mine).value(), api::StepAnswer::Done);
  ASSERT_TRUE(client_.leases.release(grant.grip, false).has_value());
  EXPECT_EQ(slots_.hand_back(mine).value(), api::StepAnswer::Done);
  EXPECT_EQ(slots_.running(mine).value(), api::StepAnswer::Gone);
  const api::Decided next = decide(slots_, "b");
  ASSERT_FALSE(next.job.due.empty());  // a minute may have passed, and its slot is behind
  EXPECT_EQ(next.job.due.front().at, slot.at);
  EXPECT_EQ(next.job.due.front().attempt, slot.attempt);
}

// EVIDENCE-OF: G8
TEST_P(SlotsTest, EveryStepIsFencedByTheLease) {
  decide(slots_, "a");
  const core::Slot slot = due_by_hand("a");
  const Grant grant = acquire("r");
  const api::SlotProof good = proof(slot, "a", grant);
  api::SlotProof claimless = good;
  claimless.grip.claim = client_.claim();
  EXPECT_EQ(slots_.claim(claimless).value(), api::StepAnswer::Gone);
  EXPECT_EQ(slots_.start(good).value(), api::StepAnswer::Gone);  // not before it is claimed
  ASSERT_EQ(slots_.claim(good).value(), api::StepAnswer::Done);
  ASSERT_EQ(slots_.start(good).value(), api::StepAnswer::Done);
  EXPECT_EQ(slots_.running(good).value(), api::StepAnswer::Done);
  // Another's claim, while the lease stands.
  EXPECT_EQ(slots_.hand_back(claimless).value(), api::StepAnswer::Gone);
  EXPECT_EQ(
      slots_.end(claimless, {.state = core::SlotState::Ran, .exit_code = 0}, rule_).value().step,
      api::StepAnswer::Gone);
  // Revoked: whatever it says, it is lost.
  ASSERT_TRUE(client_.leases.revoke(order("r", grant.token()), core::Reason::Revoked).has_value());
  const auto end = slots_.end(good, {.state = core::SlotState::Ran, .exit_code = 0}, rule_);
  EXPECT_EQ(end.value().state, core::SlotState::Lost);
  EXPECT_EQ(slots_.end(good, {}, rule_).value().step, api::StepAnswer::Gone);
}

TEST_P(SlotsTest, WhatIsStartedAndLostIsRecordedByWhoeverLooksNext) {
  decide(slots_, "a");
  const core::Slot slot = due_by_hand("a");
  const Grant grant = acquire("r", "ann", brief());
  const api::SlotProof good = proof(slot, "a", grant);
  ASSERT_EQ(slots_.claim(good).value(), api::StepAnswer::Done);
  ASSERT_EQ(slots_.start(good).value(), api::StepAnswer::Done);
  EXPECT_TRUE(site_->eventually([&] {
    decide(slots_, "b");
    const auto history = slots_.history("job", 100).value();
    return std::ranges::any_of(history.ended, [&](const core::EndedSlot& ended) {
      return ended.slot.at == slot.at && ended.state == core::SlotState::Lost;
    });
  }));
  EXPECT_EQ(slots_.end(good, {}, rule_).value().step, api::StepAnswer::Gone);
}

// Whether a run lives was read before: what is due meanwhile is not skipped for a run that is over.
// EVIDENCE-OF: G9
TEST_P(SlotsTest, ARunThatEndsBetweenTheLookAndTheDecisionIsNotInTheWay) {
  decide(slots_, "a");
  const core::Slot slot = due_by_hand("a");
  const Grant grant = acquire("r");
  const api::SlotProof good = proof(slot, "a", grant);
  ASSERT_EQ(slots_.claim(good).value(), api::StepAnswer::Done);
  ASSERT_EQ(slots_.start(good).value(), api::StepAnswer::Done);
  Meanwhile store(site_->open());
  service::SlotService late(store, client_.ledger, site_->clock());
  bool over = false;
  store.before_commit([&] {
    over = done(client_.leases.revoke(order("r", grant.token()), core::Reason::Revoked));
  });
  ASSERT_TRUE(site_->eventually([&] {
    decide(late, "b");
    return over;
  }));
  const auto history = slots_.history("job", 100).value();
  EXPECT_TRUE(std::ranges::any_of(history.ended, [&](const core::EndedSlot& ended) {
    return ended.slot.at == slot.at && ended.state == core::SlotState::Lost;
  }));
}

// EVIDENCE-OF: G9
TEST_P(SlotsTest, ALeaseThatRanOutStartsNothing) {
  decide(slots_, "a");
  const core::Slot slot = due_by_hand("a");
  const Grant grant = acquire("r", "ann", brief());
  ASSERT_EQ(slots_.claim(proof(slot, "a", grant)).value(), api::StepAnswer::Done);
  ASSERT_TRUE(wait_for("r", core::State::Free));
  EXPECT_EQ(slots_.start(proof(slot, "a", grant)).value(), api::StepAnswer::Gone);
}

TEST_P(SlotsTest, WhatIsOnlyClaimedIsDueAgain) {
  decide(slots_, "a");
  const core::Slot slot = due_by_hand("a");
  const Grant grant = acquire("r", "ann", brief());
  ASSERT_EQ(slots_.claim(proof(slot, "a", grant)).value(), api::StepAnswer::Done);
  EXPECT_TRUE(site_->eventually([&] { return decide(slots_, "b").mine; }));
  EXPECT_EQ(slots_.start(proof(slot, "a", grant)).value(), api::StepAnswer::Gone);
}

TEST_P(SlotsTest, ManySchedulersTogetherKeepTheCap) {
  rule_ = every_second(2);
  decide(slots_, "first");
  due("first");
  std::vector<std::thread> threads;
  std::atomic<int> most = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Client mine(*site_);
      SlotClient scheduler(*site_, mine);
      api::Slots& slots = scheduler.slots;
      for (int k = 0; k < 10; ++k) {
        auto answer = slots.decide({{.rule = &rule_}}, "s" + std::to_string(i));
        if (!answer.front()) continue;
        const int open = static_cast<int>(answer.front()->job.due.size());
        int before = most;
        while (open > before && !most.compare_exchange_weak(before, open)) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most, 2);
}

TEST_P(SlotsTest, OrdersAreRecordedAndWakeTheSchedulers) {
  decide(slots_, "a");
  auto watch = slots_.watch();
  ASSERT_TRUE(watch.has_value());
  ASSERT_TRUE(slots_.pause(rule_, "op").has_value());
  EXPECT_TRUE(slots_.history("job", 1).value().job->paused);
  const auto added = slots_.add(rule_, std::nullopt, "");
  ASSERT_TRUE(added.has_value());
  EXPECT_EQ(added->what, api::SlotAdded::What::Added);
  EXPECT_EQ(slots_.open_jobs().value(), std::vector<std::string>{"job"});
  ASSERT_TRUE(slots_.resume(rule_, "op").has_value());
  EXPECT_FALSE(slots_.history("job", 1).value().job->paused);
  const auto lines = kinds("job");
  for (const char* kind : {"job_paused", "job_triggered", "job_resumed"}) {
    EXPECT_NE(std::ranges::find(lines, kind), lines.end()) << kind;
  }
}

TEST_P(SlotsTest, OnceIsRecordedUnderItsLease) {
  const Grant grant = acquire("once/k");
  EXPECT_EQ(slots_.once("k").value().state, api::OnceRecord::State::None);
  ASSERT_EQ(slots_.once_start("k", grant.grip, owner("ann")).value(), api::StepAnswer::Done);
  EXPECT_EQ(slots_.once("k").value().state, api::OnceRecord::State::Started);
  api::Grip wrong = grant.grip;
  wrong.claim = client_.claim();
  EXPECT_EQ(slots_.once_end("k", wrong, 0).value(), api::StepAnswer::Gone);
  ASSERT_EQ(slots_.once_end("k", grant.grip, 0).value(), api::StepAnswer::Done);
  EXPECT_EQ(slots_.once("k").value().state, api::OnceRecord::State::Done);
  EXPECT_EQ(slots_.once_start("k", grant.grip, owner("ann")).value(), api::StepAnswer::Gone);
}

STINT_LEASES_ON_EVERY_STORE(SlotsTest);

}  // namespace
}  // namespace stint::testing
