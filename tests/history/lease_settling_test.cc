// An answer that was lost is asked for again; what the store shows by then settles it only if it
// shows the effect.
#include <gtest/gtest.h>

#include <functional>

#include "base/text.h"
#include "os/clock.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "store/memory/memory_store.h"
#include "tests/support/lying_stores.h"

namespace stint::test {
namespace {

// Carries out the next commit, lets others in, and loses the answer.
class LosesOneAnswer final : public SharedStore {
 public:
  using SharedStore::SharedStore;
  void lose_next(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    auto answer = SharedStore::commit(steps, sync);
    if (!meanwhile_) return answer;
    const auto meanwhile = std::exchange(meanwhile_, nullptr);
    meanwhile();
    return Error{Code::UnknownOutcome, "no answer"};
  }

 private:
  std::function<void()> meanwhile_;
};

class LeaseSettling : public ::testing::Test {
 protected:
  LeaseSettling() {
    auto life = service::begin_life(store_, random_, clock_.wall(), nullptr, {});
    EXPECT_TRUE(life);
    service_.emplace(store_, ledger_, *life, clock_, random_, nullptr);
  }
  api::Grip acquire(const std::string& who) {
    const Claim claim = Claim::make(random_);
    const auto owner = Owner::parse(who).value();
    const auto answer = service_->acquire({.resource = resource_,
                                           .owner = owner,
                                           .claim = claim,
                                           .terms = {.ttl = Millis(60'000)},
                                           .note = {},
                                           .retake = {},
                                           .count_refusal = false});
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

  os::SystemClock clock_;
  os::SystemRandom random_;
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

}  // namespace
}  // namespace stint::test
