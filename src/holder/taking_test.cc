#include "holder/taking.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/random.h"
#include "tests/support/no_leases.h"

namespace stint::holder {
namespace {

class SlowClock final : public Clock {
 public:
  MonoTime mono() const override { return now; }
  WallTime wall() const override { return WallTime(); }
  MonoTime now{Millis(1'000'000)};
};

// Every call takes 10 ms; acquires are answered in this order.
class SlowLeases final : public test::NoLeases {
 public:
  explicit SlowLeases(SlowClock& clock) : clock_(clock) {}

  Result<api::AcquireAnswer> acquire(const api::AcquireRequest& request) override {
    clock_.now += Millis(10);
    claims.push_back(request.claim.hex());
    auto answer = std::move(answers.front());
    answers.pop_front();
    return answer;
  }
  Result<api::HoldAnswer> renew(const api::Grip&, Millis ttl) override {
    renewed_at.push_back(clock_.now);
    clock_.now += Millis(10);
    return api::HoldAnswer(api::Held{{}, ttl, std::nullopt});
  }
  Result<api::HoldAnswer> release(const api::Grip&, bool) override {
    ++released;
    return api::HoldAnswer(api::Held{{}, Millis(0), std::nullopt});
  }

  std::deque<Result<api::AcquireAnswer>> answers;
  std::vector<std::string> claims;
  std::vector<MonoTime> renewed_at;
  int released = 0;

 private:
  SlowClock& clock_;
};

class TakingTest : public ::testing::Test {
 protected:
  static Result<api::AcquireAnswer> granted(bool replayed = false) {
    api::Granted out;
    out.lease.token = Token(1);
    out.granted_ttl = Millis(60'000);
    out.replayed = replayed;
    return api::AcquireAnswer(out);
  }
  static Result<api::AcquireAnswer> refused() {
    return api::AcquireAnswer(api::Refused{{}, Millis(1)});
  }
  static Result<api::AcquireAnswer> failed(Code code) { return Error{code, "played"}; }

  Result<TakeAnswer> take_it(std::vector<Result<api::AcquireAnswer>> answers,
                             OnHeld on_held = OnHeld::Skip) {
    for (auto& answer : answers) leases_.answers.push_back(std::move(answer));
    begun_ = clock_.now;
    TakeRequest request;
    request.choices = {{ResourceName::parse("r").value()}};
    request.owner = Owner::parse("ann").value();
    request.terms.ttl = Millis(60'000);
    request.held = {.what = on_held, .patience = std::nullopt, .interval = Millis(1)};
    return take(leases_, clock_, random_, request, {}, [](const api::Refused&) {});
  }
  static const Kept& first(const Result<TakeAnswer>& answer) {
    return std::get<Taken>(*answer).kept.front();
  }

  SlowClock clock_;
  SlowLeases leases_{clock_};
  SeededRandom random_{1};
  MonoTime begun_{};
};

// G6
TEST_F(TakingTest, AGrantCountsFromBeforeItWasAskedFor) {
  const auto answer = take_it({granted()});
  ASSERT_TRUE(answer && std::holds_alternative<Taken>(*answer));
  EXPECT_EQ(first(answer).sent_at, begun_);
  EXPECT_EQ(first(answer).answered_at, begun_ + Millis(10));
  EXPECT_TRUE(leases_.renewed_at.empty());
}

// Asked again with the same claim: it may be the first that was done.
TEST_F(TakingTest, AGrantWhoseAnswerWasLostCountsFromBeforeTheFirstTime) {
  const auto answer = take_it({failed(Code::UnknownOutcome), granted()});
  ASSERT_TRUE(answer && std::holds_alternative<Taken>(*answer));
  EXPECT_EQ(first(answer).sent_at, begun_);
  ASSERT_EQ(leases_.claims.size(), 2U);
  EXPECT_EQ(leases_.claims[0], leases_.claims[1]);
}

TEST_F(TakingTest, AReplayedGrantIsRenewedAndCountsFromThat) {
  const auto answer = take_it({failed(Code::UnknownOutcome), granted(true)});
  ASSERT_TRUE(answer && std::holds_alternative<Taken>(*answer));
  ASSERT_EQ(leases_.renewed_at.size(), 1U);
  EXPECT_EQ(first(answer).sent_at, leases_.renewed_at.front());
}

TEST_F(TakingTest, AGrantThatWasWaitedForIsRenewedAndCountsFromThat) {
  const auto answer = take_it({refused(), granted()}, OnHeld::Retry);
  ASSERT_TRUE(answer && std::holds_alternative<Taken>(*answer));
  ASSERT_EQ(leases_.renewed_at.size(), 1U);
  EXPECT_EQ(first(answer).sent_at, leases_.renewed_at.front());
}

// The first may have been done, whatever the store says of the second.
TEST_F(TakingTest, AnAcquireWithoutAnAnswerStaysUnknown) {
  const auto answer =
      take_it({failed(Code::UnknownOutcome), failed(Code::Unavailable), failed(Code::Unavailable)});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::UnknownOutcome);
}

TEST_F(TakingTest, AnAcquireThatWasNotSentIsNotUnknown) {
  const auto answer = take_it({failed(Code::Unavailable)});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Unavailable);
  EXPECT_EQ(leases_.claims.size(), 1U);
}

}  // namespace
}  // namespace stint::holder
