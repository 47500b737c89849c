// Schedules on a store whose commits are counted, and whose records are looked at.
#include "service/slot_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "service/once_records.h"
#include "service/records.h"
#include "store/shared_store.h"
#include "tests/schedule/desk.h"

namespace stint::service {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using test::Desk;

// Refuses what is too large for any store, and says how much the largest was.
class StepLimit final : public store::SharedStore {
 public:
  using SharedStore::SharedStore;
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    most = std::max(most, steps.size());
    if (steps.size() > kMaxSteps) return unavailable("too many steps in one commit");
    return SharedStore::commit(steps, sync);
  }
  std::size_t most = 0;
};

struct Counted {
  Desk desk;
  StepLimit store{std::shared_ptr<store::Store>(&desk.store, [](store::Store*) {})};
  SlotService slots{store, desk.ledger, desk.clock};

  Result<api::Decided> decide(const schedule::JobConfig& job, bool held_back = false) {
    return slots.decide({{.rule = &job.rule, .held_back = held_back}}, "a").front();
  }
  // Thirty slots behind one long run.
  api::SlotProof pile_up(const schedule::JobConfig& job) {
    EXPECT_TRUE(decide(job));
    desk.clock.advance(minutes(1));
    const auto first = decide(job);
    auto proof = desk.start({job, first->job.due.front(), "a", desk.clock.mono()});
    EXPECT_TRUE(proof.has_value());
    for (int i = 0; i < 35; ++i) {
      desk.clock.advance(minutes(1));
      EXPECT_TRUE(decide(job));
    }
    EXPECT_EQ(desk.record(job.rule.name).due.size(), 30U);
    return *proof;
  }
};

schedule::JobConfig waiting_job() {
  schedule::JobConfig job = test::job_of("j", "* * * * *", 24);
  job.rule.waits = true;
  job.terms.ttl = hours(200);
  return job;
}

TEST(SlotService, APauseEndsAllThatWaitedHoweverMany) {
  Counted counted;
  const schedule::JobConfig job = waiting_job();
  counted.pile_up(job);
  ASSERT_TRUE(counted.slots.pause(job.rule, "me"));
  counted.desk.clock.advance(minutes(1));
  const auto decided = counted.decide(job);
  ASSERT_TRUE(decided.has_value()) << decided.error().message;
  EXPECT_EQ(decided->ended.size(), 30U);
  EXPECT_EQ(decided->dropped.size(), 1U);
  EXPECT_TRUE(counted.desk.record("j").due.empty());
  EXPECT_LE(counted.store.most, store::Store::kMaxSteps);
}

TEST(SlotService, AResumeRunsNothingThatCameDueBeforeThePause) {
  Counted counted;
  const schedule::JobConfig job = waiting_job();
  counted.pile_up(job);
  ASSERT_TRUE(counted.slots.pause(job.rule, "me"));
  counted.desk.clock.advance(minutes(1));
  const auto resumed = counted.slots.resume(job.rule, "me");
  ASSERT_TRUE(resumed.has_value()) << resumed.error().message;
  EXPECT_FALSE(counted.desk.record("j").paused);
  EXPECT_TRUE(counted.desk.record("j").due.empty());
  const auto events = counted.desk.ledger.list({}).value();
  EXPECT_EQ(std::ranges::count(events, "job_resumed", &api::Event::kind), 1);
  EXPECT_EQ(std::ranges::count(events, "skipped_paused", &api::Event::kind), 31);  // and the range
}

TEST(SlotService, AChangeFromWaitToSkipEndsAllThatWaitedHoweverMany) {
  Counted counted;
  schedule::JobConfig job = waiting_job();
  counted.pile_up(job);
  job.rule.waits = false;
  job.rule.max_backfill = 0;
  counted.desk.clock.advance(job.terms.ttl);  // and the run is lost
  const auto decided = counted.decide(job);
  ASSERT_TRUE(decided.has_value()) << decided.error().message;
  EXPECT_EQ(decided->ended.size(), 31U);
  EXPECT_EQ(counted.desk.record("j").due.size(), 1U);  // the one that is on time
}

// Something happens between the look at a lease and the commit that goes by it.
class BetweenLookAndCommit final : public store::SharedStore {
 public:
  using SharedStore::SharedStore;
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    if (happens) std::exchange(happens, {})();
    return SharedStore::commit(steps, sync);
  }
  std::function<void()> happens;
};

// EVIDENCE-OF: G9
TEST(SlotService, NothingStartsUnderALeaseThatMaxHoldEndsMeanwhile) {
  Desk desk;
  schedule::JobConfig job = test::job_of("j", "* * * * *");
  job.terms.ttl = minutes(10);
  job.terms.max_hold = minutes(10);
  const std::vector<api::DecideAsk> ask = {{.rule = &job.rule}};
  ASSERT_TRUE(desk.slots.decide(ask, "a").front());
  desk.clock.advance(minutes(1));
  const auto decided = desk.slots.decide(ask, "a").front();
  auto proof = desk.claim({job, decided->job.due.front(), "a", desk.clock.mono()});
  ASSERT_TRUE(proof.has_value()) << proof.error().message;
  // As a renewal leaves it that took long on its way: a little beyond max_hold.
  store::Step longer;
  longer.kind = store::Step::Kind::Touch;
  longer.key = alive_key("j");
  longer.demand = TimerState::Running;
  longer.timer = store::Step::TimerOp::Extend;
  longer.ttl = minutes(12);
  ASSERT_TRUE(desk.store.commit({longer}, store::Sync::Relaxed).has_value());
  BetweenLookAndCommit store(std::shared_ptr<store::Store>(&desk.store, [](store::Store*) {}));
  SlotService late(store, desk.ledger, desk.clock);
  store.happens = [&] { desk.clock.advance(minutes(11)); };
  EXPECT_EQ(late.start(*proof).value(), api::StepAnswer::Gone);
  EXPECT_EQ(desk.record("j").active->state, core::SlotState::Claimed);
}

TEST(SlotService, AnAssignmentThatIsGoneIsNotKept) {
  Desk desk;
  const schedule::JobConfig job = test::job_of("j", "* * * * *");
  const std::vector<api::DecideAsk> ask = {{.rule = &job.rule}};
  ASSERT_TRUE(desk.slots.decide(ask, "a").front());
  desk.clock.advance(minutes(1));
  ASSERT_TRUE(desk.slots.decide(ask, "a").front()->mine);
  EXPECT_TRUE(desk.slots.keep("j"));
  desk.clock.advance(minutes(1));
  const auto kept = desk.slots.keep("j");
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, Code::Lost);
  EXPECT_FALSE(desk.slots.keep("nobody's"));
}

TEST(SlotService, AKeyOfOnceIsNoIdempotencyKey) {
  Desk desk;
  const api::Once answer{.key = "abcdef", .digest = "d"};
  OnceService answers(desk.store, desk.clock);
  ASSERT_FALSE(answers.bind(answer).value().before);
  const auto once = desk.slots.once("abcdef");
  ASSERT_TRUE(once.has_value()) << once.error().message;
  EXPECT_EQ(once->state, api::OnceRecord{}.state);
  EXPECT_TRUE(answers.bind(answer).value().before);
}

// Random rules, pauses, runs and gaps: no plan is too large, and every decision can be made.
class SlotPlay {
 public:
  explicit SlotPlay(std::uint64_t seed) : random_(seed) { change_rule(); }

  void step() {
    static constexpr Millis kGaps[] = {Millis(0),  seconds(20), minutes(1),
                                       minutes(7), hours(30),   hours(24 * 500)};
    counted_.desk.clock.advance(kGaps[random_.below(std::size(kGaps))]);
    switch (random_.below(12)) {
      case 0: change_rule(); break;
      case 1: check(counted_.slots.pause(job_.rule, "me")); break;
      case 2: check(counted_.slots.resume(job_.rule, "me")); break;
      case 3: check(counted_.slots.add(job_.rule, std::nullopt, "a")); break;
      case 4: end_run(); break;
      case 5:
      case 6: pile_up(); break;
      default: decide();
    }
    EXPECT_LE(counted_.store.most, store::Store::kMaxSteps);
  }

 private:
  template <class T>
  void check(const T& answer) {
    // Orders by hand may be refused in words: another schedule counts, or there is no room.
    if (!answer && (answer.error().message.find("config_differs") != std::string::npos ||
                    answer.error().message.find("too many slots") != std::string::npos)) {
      return;
    }
    EXPECT_TRUE(answer.has_value()) << answer.error().message;
  }
  void change_rule() {
    static constexpr const char* kOften[] = {"* * * * *", "*/5 * * * *", "0 * * * *"};
    const char* often = kOften[random_.below(20) == 0 ? random_.below(3) : 0];
    job_ = test::job_of("j", often, random_.below(core::kMostBackfill + 1));
    job_.rule.waits = random_.below(4) != 0;
    job_.rule.retries = static_cast<int>(random_.below(3));
    job_.rule.loaded_at = counted_.desk.clock.wall();
    if (random_.below(4) == 0) job_.rule.start_deadline = minutes(1 + random_.below(60));
    job_.terms.ttl = random_.below(2) == 0 ? Millis(minutes(3)) : Millis(hours(24 * 300));
  }
  void decide() {
    const auto decided = counted_.decide(job_, random_.below(3) == 0);
    check(decided);
    if (!decided || !decided->mine || random_.below(2) == 0) return;
    const core::Slot* next = core::next_due(decided->job, false, decided->now);
    if (next == nullptr) return;
    if (auto proof = counted_.desk.start({job_, *next, "a", counted_.desk.clock.mono()}))
      run_ = *proof;
  }
  void pile_up() {
    for (int i = 0; i < 35; ++i) {
      counted_.desk.clock.advance(minutes(1));
      check(counted_.decide(job_));
    }
  }
  void end_run() {
    if (!run_) return;
    const auto how = random_.below(2) == 0 ? core::SlotState::Ran : core::SlotState::Failed;
    check(counted_.slots.end(*run_, {.state = how}, job_.rule));
    [[maybe_unused]] const bool released =
        counted_.desk.leases.release(run_->grip, false).has_value();
    run_.reset();
  }

  SeededRandom random_;
  Counted counted_;
  schedule::JobConfig job_;
  std::optional<api::SlotProof> run_;
};

TEST(SlotServiceProperty, NoDecisionIsTooLargeForOneCommit) {
  for (std::uint64_t seed = 0; seed < 8 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    SlotPlay play(seed);
    for (int i = 0; i < 150 && !::testing::Test::HasFailure(); ++i) play.step();
  }
}

}  // namespace
}  // namespace stint::service
