// Items and slots under threads and schedulers that walk away, come late and come twice: what they
// were told, written down and judged (rules 11 and 16).
// EVIDENCE-OF: G8 G9 G10
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "probe/recorded_queue.h"
#include "service/lease_service.h"
#include "service/queue_service.h"
#include "service/slot_service.h"
#include "tests/support/history_checker.h"
#include "tests/support/lying_stores.h"

namespace stint::test {
namespace {

// Lines of a history, kept in memory.
class Lines {
 public:
  probe::History history{"p", [this](const std::string& line) {
                           const std::lock_guard lock(mutex_);
                           text_ += line;
                         }};
  HistoryReport report() {
    auto events = probe::parse_history(text_);
    EXPECT_TRUE(events.has_value());
    return check_history(*events);
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

std::set<int> numbers_of(const HistoryReport& report) {
  std::set<int> out;
  for (const Violation& one : report.violations) out.insert(one.invariant);
  return out;
}

constexpr int kItems = 40;
constexpr Millis kClaimTtl{5};

// Four workers until every item is completed, or `until`. Each has a store of its own kind.
HistoryReport play_items(const std::function<std::shared_ptr<store::Store>()>& open,
                         Millis longest) {
  const os::SystemClock clock;
  os::SystemRandom random;
  Lines lines;
  const core::QueueName name = core::QueueName::parse("q").value();
  const auto first = open();
  EXPECT_TRUE(service::begin_life(*first, random, clock.wall(), nullptr, {}));
  {
    service::Ledger ledger(*first, clock, 1000);
    service::QueueService queue(*first, ledger, clock, random);
    const core::ItemLimits limits{
        .max_attempts = 1000, .claim_ttl = kClaimTtl, .requeue = core::Requeue::Always};
    EXPECT_TRUE(queue.configure({name, limits}));
    for (int i = 0; i < kItems; ++i) {
      EXPECT_TRUE(queue.put({.queue = name,
                             .payload = "x",
                             .unique = {},
                             .labels = {},
                             .by = "test",
                             .limits = std::nullopt}));
    }
  }
  std::atomic<int> completed = 0;
  const MonoTime until = clock.mono() + longest;
  const auto worker = [&](int number) {
    SeededRandom chance(static_cast<std::uint64_t>(number));
    const auto store = open();
    service::Ledger ledger(*store, clock, 1000);
    service::QueueService service(*store, ledger, clock, random);
    probe::RecordedQueue queue(service, lines.history, cat("w", number), clock);
    while (completed < kItems && clock.mono() < until) {
      const auto claimed = queue.claim({.queue = name,
                                        .owner = Owner::parse(cat("w", number)).value(),
                                        .claim = Claim::make(random),
                                        .ttl = Millis(0)});
      const auto* item = claimed ? std::get_if<api::ClaimedItem>(&*claimed) : nullptr;
      if (item == nullptr) {
        os::pause_for(Millis(1));
        continue;
      }
      os::pause_for(Millis(static_cast<std::int64_t>(chance.below(12))));  // often too long
      if (chance.below(5) == 0) continue;                                  // walks away
      const api::Completion done{
          .ref = {item->item.id, item->item.item.epoch}, .result = cat("by ", number), .then = {}};
      for (int again = chance.below(3) == 0 ? 2 : 1; again > 0; --again) {
        const auto answer = queue.complete(done);
        const auto* it = answer ? std::get_if<api::ItemDone>(&*answer) : nullptr;
        if (it != nullptr && !it->repeated) ++completed;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(worker, i);
  for (std::thread& thread : threads) thread.join();
  return lines.report();
}

TEST(QueueHistory, OfWorkersThatComeLateAndTwiceIsClean) {
  const os::SystemClock clock;
  const auto shared = std::make_shared<store::MemoryStore>(clock);
  const HistoryReport report = play_items([&] { return shared; }, Millis(120'000));
  EXPECT_TRUE(report.violations.empty()) << report.text();
  EXPECT_GE(report.verbs.at("complete"), static_cast<std::size_t>(kItems));
}

TEST(QueueHistory, NamesTheSecondCompletionOfAStoreInWhichTheLastWriterWins) {
  const os::SystemClock clock;
  const auto shared = std::make_shared<store::MemoryStore>(clock);
  const HistoryReport report =
      play_items([&] { return std::make_shared<LastWriterWins>(shared); }, Millis(20'000));
  EXPECT_TRUE(numbers_of(report).contains(11)) << report.text();
}

// A clock that the test moves.
class HandClock final : public Clock {
 public:
  MonoTime mono() const override { return MonoTime(now_); }
  WallTime wall() const override {
    return WallTime(std::chrono::hours(24 * 365 * 56)) + std::chrono::duration_cast<Millis>(now_);
  }
  void advance(Millis by) { now_ += by; }

 private:
  Nanos now_{1'000'000'000};
};

// Three schedulers take turns at one job a second; runs end well, badly, or never.
class SlotPlay {
 public:
  SlotPlay() {
    auto life = service::begin_life(store_, random_, clock_.wall(), nullptr, {});
    EXPECT_TRUE(life);
    leases_.emplace(store_, ledger_, *life, clock_, random_, nullptr);
    rule_.name = "job";
    rule_.schedule = "* * * * * *";
    rule_.expression = core::parse_cron(rule_.schedule).value();
    rule_.digest = core::schedule_digest(rule_.schedule, "UTC");
    rule_.max_backfill = 3;
    rule_.retries = 1;
    rule_.backoff = Millis(100);
  }

  void turn() {
    clock_.advance(Millis(static_cast<std::int64_t>(chance_.below(900))));
    const std::string who = cat("s", chance_.below(3));
    const auto decided = slots_.decide(rule_, who);
    ASSERT_TRUE(decided) << decided.error().message;
    if (!decided->mine) return;
    const core::Slot* slot = core::next_due(decided->job, false, decided->now);
    if (slot != nullptr) run(*slot, who);
  }

  // A paused job begins nothing: all that was due has an end when it rests.
  void settle() {
    ASSERT_TRUE(service_.pause(rule_, "test"));
    for (int i = 0; i < 100; ++i) {
      clock_.advance(Millis(2000));
      const auto decided = slots_.decide(rule_, "s0");
      ASSERT_TRUE(decided) << decided.error().message;
      if (decided->job.due.empty() && !decided->job.active) return;
    }
    FAIL() << "the job never came to rest";
  }

  HistoryReport report() { return lines_.report(); }

 private:
  void run(const core::Slot& slot, const std::string& who) {
    const Claim claim = Claim::make(random_);
    const ResourceName resource = ResourceName::parse("job").value();
    const Owner owner = Owner::parse(who).value();
    const auto answer = leases_->acquire({.resource = resource,
                                          .owner = owner,
                                          .claim = claim,
                                          .terms = {.ttl = Millis(500)},
                                          .note = {},
                                          .retake = {},
                                          .count_refusal = false});
    const auto* granted = answer ? std::get_if<api::Granted>(&*answer) : nullptr;
    if (granted == nullptr) return;
    const api::SlotProof proof{
        .job = "job",
        .at = slot.at,
        .attempt = slot.attempt,
        .scheduler = who,
        .owner = owner,
        .grip = {resource, granted->lease.token, claim, owner, granted->hint}};
    const auto taken = service_.claim(proof);
    if (!taken || *taken == api::StepAnswer::Gone) return;
    if (chance_.below(6) == 0) return;  // dies before the start
    const auto started = slots_.start(proof);
    if (!started || *started == api::StepAnswer::Gone) return;
    if (chance_.below(5) == 0) return;  // dies in the middle
    clock_.advance(Millis(static_cast<std::int64_t>(chance_.below(900))));
    const bool good = chance_.below(3) != 0;
    static_cast<void>(slots_.end(
        proof,
        {.state = good ? core::SlotState::Ran : core::SlotState::Failed, .exit_code = good ? 0 : 1},
        rule_));
    static_cast<void>(leases_->release(proof.grip, false));
  }

  HandClock clock_;
  SeededRandom random_{7};
  SeededRandom chance_{11};
  store::MemoryStore store_{clock_};
  service::Ledger ledger_{store_, clock_, 1000};
  std::optional<service::LeaseService> leases_;
  service::SlotService service_{store_, ledger_, clock_};
  Lines lines_;
  probe::RecordedSlots slots_{service_, lines_.history, "s", clock_};
  core::JobRule rule_;
};

TEST(SlotHistory, OfSchedulersThatDieIsAccountedFor) {
  SlotPlay play;
  for (int i = 0; i < 400 && !::testing::Test::HasFatalFailure(); ++i) play.turn();
  play.settle();
  const HistoryReport report = play.report();
  EXPECT_TRUE(report.violations.empty()) << report.text();
  EXPECT_GT(report.verbs.at("slot"), 100U);
  EXPECT_GT(report.verbs.at("due"), 100U);
}

}  // namespace
}  // namespace stint::test
