// An answer that was lost is asked for again; what the store shows by then settles it only if it
// shows the effect.
#include <gtest/gtest.h>

#include <functional>

#include "base/text.h"
#include "os/clock.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "service/queue_service.h"
#include "service/slot_service.h"
#include "store/many.h"
#include "store/memory/memory_store.h"
#include "tests/support/lying_stores.h"

namespace stint::test {
namespace {

// Carries out the next commit, lets others in, and loses the answer.
class LosesOneAnswer final : public SharedStore, public store::ManyCommits {
 public:
  using SharedStore::SharedStore;
  void lose_next(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }
  void refuse_next() { refuse_ = true; }
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    if (std::exchange(refuse_, false)) return unavailable("connection refused");
    auto answer = SharedStore::commit(steps, sync);
    if (!meanwhile_) return answer;
    const auto meanwhile = std::exchange(meanwhile_, nullptr);
    meanwhile();
    return Error{Code::UnknownOutcome, "no answer"};
  }
  std::vector<Result<store::CommitAnswer>> commit_many(
      const std::vector<store::Proposal>& proposals) override {
    std::vector<Result<store::CommitAnswer>> out;
    for (const auto& one : proposals) out.push_back(commit(one.steps, one.sync));
    return out;
  }

 private:
  std::function<void()> meanwhile_;
  bool refuse_ = false;
};

class LeaseSettling : public ::testing::Test {
 protected:
  LeaseSettling() {
    auto life = service::begin_life(store_, random_, clock_.wall(), nullptr, {});
    EXPECT_TRUE(life);
    service_.emplace(store_, ledger_, *life, clock_, random_, nullptr);
  }
  api::AcquireRequest bid(const std::string& who, const ResourceName& resource) {
    return {.resource = resource,
            .owner = Owner::parse(who).value(),
            .claim = Claim::make(random_),
            .terms = {.ttl = Millis(60'000)},
            .note = {},
            .retake = {},
            .count_refusal = false};
  }
  api::Grip acquire(const std::string& who) {
    const api::AcquireRequest request = bid(who, resource_);
    const auto& [claim, owner] = std::tie(request.claim, request.owner);
    const auto answer = service_->acquire(request);
    EXPECT_TRUE(answer && std::holds_alternative<api::Granted>(*answer));
    const auto& granted = std::get<api::Granted>(*answer);
    return {resource_, granted.lease.token, claim, owner, granted.hint};
  }
  Result<api::HoldAnswer> transfer(const api::Grip& from, const std::string& to) {
    return service_->transfer(
        {.resource = resource_, .expected = from.token, .why = "w", .by = "b"},
        Owner::parse(to).value(), Millis(60'000));
  }
  static std::string said(const Result<api::HoldAnswer>& answer) {
    if (!answer) return std::string(word(answer.error().code));
    const auto* held = std::get_if<api::Held>(&*answer);
    return held == nullptr ? "lost" : held->replayed ? "done before" : "done";
  }

  static std::string said(const Result<api::AcquireAnswer>& answer) {
    if (!answer) return std::string(word(answer.error().code));
    const auto* granted = std::get_if<api::Granted>(&*answer);
    return granted == nullptr ? "refused" : cat("token ", granted->lease.token.number());
  }
  // As a server asks: several verbs at once; "which: what" in the order in which it was told.
  std::vector<std::string> together(const std::vector<api::Ask>& asks) {
    told_.clear();
    service_->many(
        asks,
        [&](std::size_t i, const api::AskAnswer& answer) {
          told_.push_back(
              cat(i, ": ", std::visit([](const auto& one) { return said(one); }, answer)));
        },
        [] {});
    return told_;
  }

  os::SystemClock clock_;
  os::SystemRandom random_;
  std::vector<std::string> told_;
  LosesOneAnswer store_{std::make_shared<store::MemoryStore>(clock_)};
  service::Ledger ledger_{store_, clock_, 1000};
  std::optional<service::LeaseService> service_;
  const ResourceName resource_ = ResourceName::parse("db").value();
};

TEST_F(LeaseSettling, AReleaseIsSettledWhileItsEffectCanBeSeen) {
  const api::Grip ann = acquire("ann");
  store_.lose_next([] {});
  EXPECT_EQ(said(service_->release(ann, false)), "done before");
}

// It was told as a loss: the holder was to believe that its work had not been alone.
TEST_F(LeaseSettling, AReleaseThatAnotherGrantFollowedStaysUnknown) {
  const api::Grip ann = acquire("ann");
  store_.lose_next([&] { acquire("bob"); });
  EXPECT_EQ(said(service_->release(ann, false)), "unknown_outcome");
  EXPECT_EQ(said(service_->release(ann, false)), "lost") << "asked anew, it is one";
}

// It was told as refused: a token had been given, and nobody knew to whom.
TEST_F(LeaseSettling, AnAcquireThatAnotherGrantFollowedStaysUnknown) {
  for (const bool together_with_others : {false, true}) {
    const auto request =
        bid("ann", ResourceName::parse(together_with_others ? "two" : "one").value());
    store_.lose_next([&] {
      const auto mine = service_->get(request.resource);
      ASSERT_TRUE(mine);
      ASSERT_TRUE(service_->revoke(
          {.resource = request.resource, .expected = mine->token, .why = "w", .by = "b"},
          core::Reason::Revoked));
      ASSERT_EQ(said(service_->acquire(bid("bob", request.resource))), "token 3");
    });
    if (together_with_others) {
      EXPECT_EQ(together({request}), std::vector<std::string>{"0: unknown_outcome"});
    } else {
      EXPECT_EQ(said(service_->acquire(request)), "unknown_outcome");
    }
    EXPECT_EQ(said(service_->acquire(request)), "refused") << "asked anew, it is one";
  }
}

TEST_F(LeaseSettling, ATransferIsSettledWhileItsEffectCanBeSeen) {
  const api::Grip ann = acquire("ann");
  store_.lose_next([] {});
  EXPECT_EQ(said(transfer(ann, "bob")), "done before");
}

TEST_F(LeaseSettling, ATransferThatWasTakenUpAndGivenBackStaysUnknown) {
  const api::Grip ann = acquire("ann");
  store_.lose_next([&] {
    EXPECT_TRUE(service_->release(acquire("bob"), false));
    acquire("cid");
  });
  EXPECT_EQ(said(transfer(ann, "bob")), "unknown_outcome");
}

TEST_F(LeaseSettling, OneOfManyReleasesThatAnotherGrantFollowedStaysUnknown) {
  const api::Grip ann = acquire("ann");
  store_.lose_next([&] { acquire("bob"); });
  EXPECT_EQ(together({api::Ending{ann}}), std::vector<std::string>{"0: unknown_outcome"});
}

TEST_F(LeaseSettling, OneOfManyReleasesIsSettledWhileItsEffectCanBeSeen) {
  const api::Grip ann = acquire("ann");
  store_.lose_next([] {});
  EXPECT_EQ(together({api::Ending{ann}}), std::vector<std::string>{"0: done before"});
}

// Its answer is known when the records are read: it waits for no disk.
TEST_F(LeaseSettling, ARefusalIsToldBeforeWhatTheOthersWantIsWritten) {
  const api::Grip ann = acquire("ann");
  const auto other = ResourceName::parse("other").value();
  std::vector<std::string> before;
  store_.lose_next([&] { before = told_; });
  const auto all = together({bid("bob", other), bid("cid", resource_)});
  EXPECT_EQ(before, std::vector<std::string>{"1: refused"});
  EXPECT_EQ(all, (std::vector<std::string>{"1: refused", "0: token 1"}));
}

// Of the lease that it ends there may be a grant in the same turn.
TEST_F(LeaseSettling, AReleaseIsToldBeforeWhatWaitsForADisk) {
  const api::Grip ann = acquire("ann");
  std::vector<std::string> told;
  std::vector<std::string> early;
  const api::AcquireRequest next = bid("bob", resource_);
  service_->many(
      {next, api::Ending{ann}},
      [&](std::size_t i, const api::AskAnswer& answer) {
        told.push_back(cat(i, ": ", std::visit([](const auto& one) { return said(one); }, answer)));
      },
      [&] { early = told; });
  EXPECT_EQ(early, std::vector<std::string>{"1: done"});
  EXPECT_EQ(told, (std::vector<std::string>{"1: done", "0: token 2"}));
}

// A hint may be old: what it says of the lease is no reason to call it lost.
TEST_F(LeaseSettling, OneOfManyWithAnOldHintIsJudgedByWhatIsRead) {
  const api::Grip ann = acquire("ann");
  ASSERT_TRUE(service_->renew(ann, Millis(60'000)));
  EXPECT_TRUE(service_->release(ann, false));
  EXPECT_EQ(together({api::Renewal{ann, Millis(60'000)}, api::Ending{ann}}),
            (std::vector<std::string>{"0: lost", "1: done before"}));
}

// Nor is what this service knew of it: another may have moved it since.
TEST_F(LeaseSettling, OneOfManyWithAnOldHintIsToldWhatBecameOfIt) {
  api::Grip ann = acquire("ann");
  auto life = service::begin_life(store_, random_, clock_.wall(), nullptr, {});
  ASSERT_TRUE(life);
  service::LeaseService other(store_, ledger_, *life, clock_, random_, nullptr);
  ASSERT_TRUE(other.revoke({.resource = resource_, .expected = ann.token, .why = "w", .by = "b"},
                           core::Reason::Revoked));
  ann.owner = Owner::parse("eve").value();  // no holder by what was known
  core::Cause cause = core::Cause::None;
  service_->many(
      {api::Renewal{ann, Millis(60'000)}},
      [&](std::size_t /*ask*/, auto answer) {
        const auto& held = std::get<Result<api::HoldAnswer>>(answer);
        ASSERT_TRUE(held && std::holds_alternative<api::Lost>(*held));
        cause = std::get<api::Lost>(*held).cause;
      },
      [] {});
  EXPECT_EQ(cause, core::Cause::Revoked);
}

// Of two bids for one free lease, read at the same moment, one gets it.
TEST_F(LeaseSettling, TwoOfManyForOneLeaseAreJudgedOneAfterTheOther) {
  EXPECT_EQ(together({bid("ann", resource_), bid("bob", resource_)}),
            (std::vector<std::string>{"0: token 1", "1: refused"}));
}

// A store that is restored must be noticed by whoever was told of a grant.   G12
TEST_F(LeaseSettling, WhatIsGrantedToManyIsRememberedBeforeAnybodyIsTold) {
  class Remembers final : public service::Anchors {
   public:
    Result<std::optional<service::Anchor>> recall() override { return last; }
    void remember(const service::Anchor& anchor) override { last = anchor; }
    std::optional<service::Anchor> last;
  };
  Remembers anchors;
  auto life = service::begin_life(store_, random_, clock_.wall(), nullptr, {});
  ASSERT_TRUE(life);
  service::LeaseService service(store_, ledger_, *life, clock_, random_, &anchors);
  const auto other = ResourceName::parse("other").value();
  EXPECT_TRUE(service.release(acquire("ann"), false));
  int told = 0;
  service.many(
      {bid("bob", resource_), bid("cid", other)},
      [&](std::size_t /*ask*/, const api::AskAnswer& answer) {
        const auto& bid = std::get<Result<api::AcquireAnswer>>(answer);
        ASSERT_TRUE(bid && std::holds_alternative<api::Granted>(*bid));
        ASSERT_TRUE(anchors.last);
        EXPECT_EQ(anchors.last->highest, Token(2));
        ++told;
      },
      [] {});
  EXPECT_EQ(told, 2);
}

// `stint once`: the end was recorded, or not; another has the lease by now.
TEST_F(LeaseSettling, TheEndOfAOnceThatAnotherGrantFollowedStaysUnknown) {
  service::SlotService slots(store_, ledger_, clock_);
  const api::Grip ann = acquire("ann");
  ASSERT_TRUE(slots.once_start("k", ann, Owner::parse("ann").value()));
  store_.lose_next([&] {
    EXPECT_TRUE(service_->release(ann, false));
    acquire("bob");
  });
  const auto ended = slots.once_end("k", ann, 0);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::UnknownOutcome);
}

TEST_F(LeaseSettling, TheEndOfAOnceIsSettledWhileTheLeaseStands) {
  service::SlotService slots(store_, ledger_, clock_);
  const api::Grip ann = acquire("ann");
  ASSERT_TRUE(slots.once_start("k", ann, Owner::parse("ann").value()));
  store_.lose_next([] {});
  EXPECT_EQ(slots.once_end("k", ann, 0).value(), api::StepAnswer::Done);
}

// The item was put, and claimed before the lost answer is asked for again: it is one item.
// EVIDENCE-OF: G10
TEST_F(LeaseSettling, APutWhoseItemWasClaimedMeanwhilePutsNoSecondOne) {
  service::QueueService here(store_, ledger_, clock_, random_);
  service::QueueService worker(store_, ledger_, clock_, random_);
  const auto queue = core::QueueName::parse("q").value();
  ASSERT_TRUE(here.configure({queue, {}}));
  const auto work = [&] {
    auto answer = worker.claim(
        {.queue = queue, .owner = Owner::parse("bob").value(), .claim = Claim::make(random_)});
    const auto* claimed = answer ? std::get_if<api::ClaimedItem>(&*answer) : nullptr;
    if (claimed == nullptr) return false;
    const api::ItemRef ref{claimed->item.id, claimed->item.item.epoch};
    return worker.complete({.ref = ref, .result = {}, .then = {}}).has_value();
  };
  store_.lose_next([&] { EXPECT_TRUE(work()); });
  const auto put = here.put(
      {.queue = queue, .payload = "work", .unique = {}, .labels = {}, .by = "ann", .limits = {}});
  EXPECT_TRUE(put) << put.error().message;
  EXPECT_FALSE(work()) << "the same work for a second worker";
  const auto all = here.list({.queue = queue, .state = {}, .limit = 10});
  EXPECT_TRUE(all && all->size() == 1);
}

// The claim was made, its answer lost, and then the store cannot be reached: nobody knows.
// EVIDENCE-OF: G10
TEST_F(LeaseSettling, AClaimWhoseRepeatIsNotReachedStaysUnknown) {
  service::QueueService here(store_, ledger_, clock_, random_);
  const auto queue = core::QueueName::parse("q").value();
  ASSERT_TRUE(here.configure({queue, {}}));
  ASSERT_TRUE(here.put(
      {.queue = queue, .payload = "work", .unique = {}, .labels = {}, .by = "ann", .limits = {}}));
  store_.lose_next([&] { store_.refuse_next(); });
  const auto claimed = here.claim(
      {.queue = queue, .owner = Owner::parse("bob").value(), .claim = Claim::make(random_)});
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, Code::UnknownOutcome) << claimed.error().message;
}

}  // namespace
}  // namespace stint::test
