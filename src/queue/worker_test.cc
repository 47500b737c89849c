// A worker whose store is away at the moment at which its work ends.
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
    if (failures == 0) return SharedStore::commit(steps, sync);
    --failures;
    if (how == How::Away) return unavailable("away");
    if (how == How::LostReply) {
      [[maybe_unused]] const bool done = SharedStore::commit(steps, sync).has_value();
    }
    return Error{Code::UnknownOutcome, "no answer"};
  }
  enum class How { Away, LostRequest, LostReply };
  int failures = 0;
  How how = How::Away;
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
            [&](const api::ClaimedItem&, const holder::Taken&, const std::string&, MonoTime) {
              away();
              return Result<std::vector<std::string>>(
                  std::vector<std::string>{"PATH=/usr/bin:/bin"});
            },
        .deadline_moved = [](MonoTime) {},
        .say =
            [&](const std::string& line) {
              said_ += line + "\n";
              if (on_retelling_ && line.find("told again") != line.npos) on_retelling_();
              if (on_told_ && line.find("told to stop") != line.npos) on_told_();
            }};
    return queue::work(queue_, leases_, clock_, random_, *signals, request, hooks).value();
  }
  core::Item item(const core::ItemId& id) { return queue_.show(id).value().value().item; }

  sigset_t mask_{};
  os::SystemClock clock_;
  os::SystemRandom random_;
  AwayStore store_{std::make_shared<store::MemoryStore>(clock_)};
  service::Ledger ledger_{store_, clock_, 10'000};
  service::LeaseService leases_{
      store_, ledger_, service::begin_life(store_, random_, clock_.wall(), nullptr, {}).value(),
      clock_, random_, nullptr};
  service::QueueService queue_{store_, ledger_, clock_, random_};
  const core::QueueName name_ = core::QueueName::parse("jobs").value();
  std::string said_;
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

}  // namespace
}  // namespace stint::queue
