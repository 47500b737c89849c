// Sealing between the grant and the start of the work: renewed meanwhile, and nothing is started
// unless every target is sealed and the lease still ours.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "app/opened.h"
#include "base/text.h"
#include "holder/run.h"
#include "os/clock.h"
#include "os/random.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

constexpr Millis kTtl{1000};

class RunSeals : public ::testing::Test {
 protected:
  RunSeals() { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_); }
  ~RunSeals() override { ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }

  static ResourceName resource() { return ResourceName::parse("r").value(); }
  bool started() const { return std::filesystem::exists(dir_.file("started")); }
  api::Lease lease() { return opened_->leases().get(resource()).value(); }
  Status revoke() {
    auto done =
        opened_->leases().revoke({resource(), lease().token, "test", "op"}, core::Reason::Revoked);
    return done ? Status() : Status(done.error());
  }

  Result<holder::RunAnswer> go(const holder::SealStep& step) {
    auto signals = os::Signals::make();
    if (!signals) return signals.error();
    holder::RunRequest request;
    request.resources = {resource()};
    request.owner = Owner::parse("ann").value();
    request.terms.ttl = kTtl;
    request.settings = {
        .ttl = kTtl, .grace = core::default_grace(kTtl), .margin = core::default_margin(kTtl)};
    request.command = {"touch", dir_.file("started")};
    const holder::RunHooks hooks{
        .seals = [&](const holder::Taken&) -> Result<std::vector<holder::SealStep>> {
          return std::vector<holder::SealStep>{step};
        },
        .environment = [](const holder::Taken&, MonoTime) -> Result<std::vector<std::string>> {
          return std::vector<std::string>{"PATH=/usr/bin:/bin"};
        },
        .deadline_moved = [](MonoTime) {},
        .say = [](const std::string&) {},
        .waiting = [](const api::Refused&) {}};
    return holder::run(opened_->leases(), opened_->events(), clock_, random_, *signals, request,
                       hooks);
  }

  sigset_t mask_{};
  TempDir dir_;
  os::SystemClock clock_;
  os::SystemRandom random_;
  std::unique_ptr<app::Opened> opened_ =
      app::Opened::open({.url = app::parse_store_url(cat("sqlite:", dir_.file("s.db"))).value(),
                         .state_directory = "",
                         .may_create = true},
                        clock_, random_)
          .value();
};

// EVIDENCE-OF: G6
TEST_F(RunSeals, TheLeaseIsRenewedWhileASealTakesLong) {
  const auto answer = go([&]() -> Status {
    const MonoTime late = now() + kTtl * 5 / 2;
    EXPECT_TRUE(wait_until([&] { return now() >= late; }));
    EXPECT_TRUE(lease().held) << "two ttls later";
    EXPECT_FALSE(started());
    return {};
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->end.how, holder::RunEnd::How::Exited);
  EXPECT_TRUE(answer->released);
  EXPECT_TRUE(started());
}

// EVIDENCE-OF: G5 G7
TEST_F(RunSeals, ALeaseLostWhileSealingStartsNothing) {
  for (const bool stale : {false, true}) {
    const auto answer = go([&]() -> Status {
      EXPECT_TRUE(revoke());
      if (stale) return Error{Code::Stale, "a newer token stands there"};
      // Until the keeper has heard of it: the next renewal tells.
      const MonoTime due = now() + kTtl;
      EXPECT_TRUE(wait_until([&] { return now() >= due; }));
      return {};
    });
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->end.how, holder::RunEnd::How::Lost);
    EXPECT_FALSE(answer->end.started);
    EXPECT_EQ(answer->end.lost->cause, core::Cause::Revoked);
    EXPECT_FALSE(started());
  }
}

TEST_F(RunSeals, ATargetThatRefusesIsNotReachedOrUnknownStartsNothingAndTheLeaseIsGivenBack) {
  for (const Code code : {Code::Stale, Code::Foreign, Code::Unavailable, Code::UnknownOutcome}) {
    const auto answer = go([&]() -> Status { return Error{code, "no"}; });
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, code);
    EXPECT_FALSE(started());
    EXPECT_EQ(lease().state, core::State::Free) << "released";
  }
}

TEST_F(RunSeals, ASignalWhileSealingStartsNothing) {
  const auto answer = go([&]() -> Status {
    ::raise(SIGTERM);
    return {};
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->interrupted, SIGTERM);
  EXPECT_FALSE(started());
  EXPECT_EQ(lease().state, core::State::Free);
}

}  // namespace
}  // namespace stint::test
