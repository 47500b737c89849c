// A worker whose store is away at the moment at which its work ends, or whose claim is gone.
#include "queue/worker.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "os/clock.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "service/queue_service.h"
#include "service/store_life.h"
#include "store/memory/memory_store.h"
#include "store/shared_store.h"
#include "tests/support/queue_asks.h"

namespace stint::queue {
namespace {

// So many commits fail, as told.
class AwayStore final : public store::SharedStore {
 public:
  using SharedStore::SharedStore;
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    if (passes > 0 || failures == 0) {
      passes -= passes > 0 ? 1 : 0;
      auto answer = SharedStore::commit(steps, sync);
      if (on_commit) on_commit();
      return answer;
    }
    --failures;
    if (how == How::Away) return unavailable("away");
    if (how == How::LostReply) {
      [[maybe_unused]] const bool done = SharedStore::commit(steps, sync).has_value();
    }
    return Error{Code::UnknownOutcome, "no answer"};
  }
  enum class How { Away, LostRequest, LostReply };
  int passes = 0;  // so many commits before the first that fails
  int failures = 0;
  std::function<void()> on_commit;  // after each that passed
  How how = How::Away;
};

// Goes ahead by as much as it is told.
class ShiftedClock final : public Clock {
 public:
  MonoTime mono() const override { return real_.mono() + ahead; }
  WallTime wall() const override { return real_.wall(); }
  Nanos ahead{0};

 private:
  os::SystemClock real_;
};

class WorkerAway : public ::testing::Test {
 protected:
  WorkerAway() { ::pthread_sigmask(SIG_SETMASK, nullptr, &mask_); }
  ~WorkerAway() override { ::pthread_sigmask(SIG_SETMASK, &mask_, nullptr); }

  core::ItemId put() { return queue_.put(test::put_request(name_)).value().id; }
  // `away`: called when the command is about to be started; nothing else is committed until it has
  // ended.
  WorkEnd work(const std::vector<std::string>& command, const std::function<void()>& away) {
    auto signals = os::Signals::make();
    EXPECT_TRUE(signals.has_value());
    const WorkRequest request{.queue = name_,
                              .owner = Owner::parse("ann").value(),
                              .ttl = std::chrono::minutes(10),
                              .with = {},
                              .terms = {},
                              .grace = {},
                              .command = command,
                              .until_empty = true,
                              .give_up = {}};
    const WorkHooks hooks{
        .payload_file = [](const api::ClaimedItem&) { return Result<std::string>("/dev/null"); },
        .environment =
            [&](const api::ClaimedItem&, const holder::Taken&, const std::string&,
                MonoTime deadline) {
              deadline_ = deadline;
              away();
              return Result<std::vector<std::string>>(
                  std::vector<std::string>{"PATH=/usr/bin:/bin"});
            },
        .deadline_moved = [](MonoTime) {},
        .say =
            [&](const std::string& line) {
              said_ += line + "\n";
              if (on_said_) on_said_(line);
              if (on_retelling_ && line.find("told again") != line.npos) on_retelling_();
              if (on_told_ && line.find("told to stop") != line.npos) on_told_();
            }};
    return queue::work(queue_, leases_, clock_, random_, *signals, request, hooks).value();
  }
  core::Item item(const core::ItemId& id) { return queue_.show(id).value().value().item; }

  sigset_t mask_{};
  ShiftedClock clock_;
  os::SystemRandom random_;
  AwayStore store_{std::make_shared<store::MemoryStore>(clock_)};
  service::Ledger ledger_{store_, clock_, 10'000};
  service::LeaseService leases_{
      store_, ledger_, service::begin_life(store_, random_, clock_.wall(), nullptr, {}).value(),
      clock_, random_, nullptr};
  service::QueueService queue_{store_, ledger_, clock_, random_};
  const core::QueueName name_ = core::QueueName::parse("jobs").value();
  std::string said_;
  std::optional<MonoTime> deadline_;  // as the command was told; empty: none was started
  std::function<void(const std::string&)> on_said_;
  std::function<void()> on_retelling_;
  std::function<void()> on_told_;
};

// EVIDENCE-OF: G8
TEST_F(WorkerAway, ACompletionIsToldUntilTheStoreIsBack) {
  const core::ItemId id = put();
  const WorkEnd end = work({"true"}, [&] { store_.failures = 2; });
  EXPECT_EQ(end.completed, 1U) << said_;
  EXPECT_EQ(end.lost, 0U);
  EXPECT_EQ(item(id).state, core::ItemState::Done);
  EXPECT_EQ(store_.failures, 0);
}

TEST_F(WorkerAway, ACompletionWhoseAnswersAreLostIsDoneOnce) {
  const core::ItemId id = put();
  store_.how = AwayStore::How::LostReply;
  const WorkEnd end = work({"true"}, [&] { store_.failures = 5; });
  EXPECT_EQ(end.completed, 1U) << said_;
  EXPECT_EQ(item(id).state, core::ItemState::Done);
}

TEST_F(WorkerAway, AFailureUsesUpOneAttemptHoweverOftenItIsTold) {
  const core::ItemId id = put();
  store_.how = AwayStore::How::LostRequest;
  const WorkEnd end = work({"false"}, [&] { store_.failures = 5; });
  EXPECT_EQ(end.failed, 1U) << said_;
  EXPECT_EQ(item(id).attempts, 1U);
}

TEST_F(WorkerAway, TheSecondSignalEndsTheTelling) {
  put();
  on_retelling_ = [] { ::raise(SIGTERM); };
  on_told_ = [] { ::raise(SIGTERM); };
  const WorkEnd end = work({"true"}, [&] { store_.failures = 1'000'000; });
  EXPECT_EQ(end.lost, 1U);
  EXPECT_EQ(end.interrupted, SIGTERM);
}

// Whether the claim still stands is not known: then nothing is started.
// EVIDENCE-OF: G8
TEST_F(WorkerAway, NothingIsStartedBeforeTheStoreHasSaidThatTheClaimStands) {
  put();
  for (const auto how : {AwayStore::How::Away, AwayStore::How::LostRequest}) {
    store_.how = how;
    store_.passes = 1;  // the claim
    store_.failures = 1'000'000;
    // What could be claimed again is not: nothing can be written.
    on_said_ = [&](const std::string& line) {
      if (line.find("not started") != line.npos) ::raise(SIGTERM);
    };
    const WorkEnd end = work({"true"}, [] {});
    EXPECT_FALSE(deadline_.has_value()) << said_;
    EXPECT_EQ(end.completed, 0U);
    store_.passes = 0;
    store_.failures = 0;
    put();
  }
}

// The answer to a claim took a minute: that minute is of its time.
// EVIDENCE-OF: G6
TEST_F(WorkerAway, AClaimCountsFromBeforeItWasAskedFor) {
  put();
  constexpr auto kMinute = std::chrono::minutes(1);
  const MonoTime before = clock_.mono();
  store_.on_commit = [&] {
    clock_.ahead = kMinute;
    store_.on_commit = nullptr;
  };
  const WorkEnd end = work({"true"}, [] {});
  EXPECT_EQ(end.completed, 1U) << said_;
  ASSERT_TRUE(deadline_);
  EXPECT_LT(*deadline_, before + std::chrono::minutes(10) + std::chrono::seconds(30));
}

// EVIDENCE-OF: G8
TEST_F(WorkerAway, OfAClaimThatIsLostNothingIsTold) {
  const core::ItemId id = put();
  const WorkEnd end = work({"sleep", "1000"}, [&] {
    const core::ItemOrder cancel{.what = core::ItemOrder::What::Cancel,
                                 .expected = Token(1),
                                 .why = "not wanted",
                                 .by = "op",
                                 .id = {},
                                 .to = {},
                                 .hold = {}};
    EXPECT_TRUE(queue_.order(id, cancel));
  });
  EXPECT_EQ(end.lost, 1U);
  EXPECT_EQ(item(id).state, core::ItemState::Cancelled);
  ledger_.flush();
  const auto events = ledger_.list({});
  ASSERT_TRUE(events);
  for (const api::Event& event : *events) {
    EXPECT_NE(event.kind, "item_refused_stale") << said_;
  }
}

}  // namespace
}  // namespace stint::queue
