// What broke in other schedulers, as tests, each named after its trap.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "tests/schedule/desk.h"

namespace stint::test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using Strings = std::vector<std::string>;

TEST(Trap18, ACursorThatMovedBeforeTheRunExistsLosesNoSlot) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j", "*/5 * * * *")});
  desk.run({a.get()}, minutes(6));
  ASSERT_EQ(desk.launched.size(), 1U);  // decided, the cursor has moved; then a dies
  a.reset();
  auto b = desk.scheduler("b", {job_of("j", "*/5 * * * *")});
  desk.run({b.get()}, minutes(1));
  ASSERT_EQ(desk.launched.size(), 2U);
  EXPECT_EQ(desk.launched[1].slot.at, desk.launched[0].slot.at);
  desk.complete(*b, desk.launched[1]);
  EXPECT_EQ(desk.states("j"), (Strings{"ran"}));
}

TEST(Trap18, ALateSlotThatIsDroppedIsRecorded) {
  Desk desk;
  schedule::JobConfig job = job_of("j", "*/5 * * * *");
  job.rule.start_deadline = minutes(1);
  auto a = desk.scheduler("a", {job});
  desk.run({a.get()}, seconds(1));
  desk.clock.advance(minutes(8));
  desk.run({a.get()}, seconds(1));
  EXPECT_TRUE(desk.launched.empty());
  EXPECT_EQ(desk.states("j"), (Strings{"skipped_late*1"}));
}

TEST(Trap19, TheSlotIsDecidedInTheCommitThatMovesTheCursor) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j", "*/5 * * * *")});
  auto b = desk.scheduler("b", {job_of("j", "*/5 * * * *")});
  for (int i = 0; i < 20; ++i) {
    desk.run({a.get(), b.get()}, minutes(5));
    ASSERT_EQ(desk.launched.size(), static_cast<std::size_t>(i + 1));
    const Launched run = desk.launched.back();
    desk.complete(run.scheduler == "a" ? *a : *b, run);
  }
  EXPECT_EQ(desk.states("j"), Strings(20, "ran"));
}

TEST(Trap20, WithoutItsRowsASlotStillRunsOnce) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j", "*/5 * * * *", 5)});
  desk.run({a.get()}, minutes(5));
  desk.complete(*a, desk.launched.back());
  const auto rows = desk.store.scan({.prefix = "slot/", .after = "", .limit = 10}).value();
  ASSERT_EQ(rows.entries.size(), 1U);
  store::Step gone;
  gone.kind = store::Step::Kind::Remove;
  gone.key = rows.entries[0].key;
  ASSERT_TRUE(desk.store.commit({gone}, store::Sync::Relaxed).has_value());
  auto b = desk.scheduler("b", {job_of("j", "*/5 * * * *", 5)});
  desk.run({b.get()}, minutes(2));
  EXPECT_EQ(desk.launched.size(), 1U);
}

TEST(Trap21, ARestartReplaysNothingThatIsDone) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j", "*/5 * * * *", 5)});
  desk.run({a.get()}, minutes(5));
  desk.complete(*a, desk.launched.back());
  for (int i = 0; i < 5; ++i) {
    a = desk.scheduler(cat("a", i), {job_of("j", "*/5 * * * *", 5)});
    desk.run({a.get()}, seconds(30));
  }
  EXPECT_EQ(desk.launched.size(), 1U);
}

TEST(Trap21, ASlotThatTakesItsSchedulerDownTwiceIsQuarantined) {
  Desk desk;
  schedule::JobConfig job = job_of("j", "0 * * * *");
  job.rule.retries = 100;
  job.rule.backoff = seconds(1);
  std::unique_ptr<schedule::Scheduler> a;
  for (int i = 0; i < 4; ++i) {
    a = desk.scheduler(cat("a", i), {job});
    desk.run({a.get()}, i == 0 ? Nanos(hours(1)) : Nanos(minutes(3)));
    const std::size_t expected = i == 0 ? 1U : 2U;
    ASSERT_EQ(desk.launched.size(), expected) << i;
    if (i >= 2) continue;
    ASSERT_TRUE(desk.start(desk.launched.back()).has_value());  // and dies with it
  }
  EXPECT_EQ(desk.launched[1].slot.attempt, 2);
  EXPECT_EQ(desk.states("j"), (Strings{"quarantined"}));
}

TEST(Trap22, AfterAWakeTheJobsStartOneAfterTheOther) {
  Desk desk;
  std::vector<schedule::JobConfig> jobs;
  for (int i = 0; i < 5; ++i) jobs.push_back(job_of(cat("j", i), "*/15 * * * *", 1));
  auto a = desk.scheduler("a", jobs);
  desk.run({a.get()}, seconds(1));
  desk.clock.advance(hours(10) + minutes(7));
  desk.run({a.get()}, seconds(20));
  ASSERT_EQ(desk.launched.size(), 5U);
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_GE(desk.launched[i].at - desk.launched[i - 1].at, Nanos(seconds(1)));
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(desk.states(cat("j", i)), (Strings{"skipped_stale*39"}));
  }
}

TEST(Trap22, TheSpreadIsBoundedSoThatAShortLivedHostGetsThroughIt) {
  Desk desk;
  std::vector<schedule::JobConfig> jobs;
  for (int i = 0; i < 500; ++i) jobs.push_back(job_of(cat("j", i), "0 3 * * *", 1));
  auto a = desk.scheduler("a", jobs);
  desk.run({a.get()}, seconds(1));
  desk.clock.advance(hours(24));
  desk.run({a.get()}, minutes(5));
  EXPECT_EQ(desk.launched.size(), 500U);
}

TEST(Trap23, ANewOrChangedScheduleBackFillsNothing) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j", "*/5 * * * *", 9)});
  desk.run({a.get()}, seconds(1));
  a.reset();
  desk.clock.advance(hours(5));
  auto b = desk.scheduler("b", {job_of("j", "*/6 * * * *", 9), job_of("new", "* * * * *", 9)});
  desk.run({b.get()}, seconds(10));
  EXPECT_TRUE(desk.launched.empty());
  EXPECT_EQ(desk.states("j"), (Strings{"skipped_stale*60"}));  // of the old one, on record
  // Loaded earlier, a leaves the job alone from now on.
  auto late = desk.scheduler("late", {job_of("j", "*/6 * * * *", 9)});
  auto record = desk.record("j");
  EXPECT_EQ(record.schedule, "*/6 * * * *");
}

// Two files of one job: the one that was loaded later counts, and the other scheduler says so,
// once.
TEST(Trap23, ASchedulerWithAnOlderFileLeavesTheJobAloneAndSaysSo) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j", "*/5 * * * *")});
  desk.run({a.get()}, seconds(1));
  desk.clock.advance(seconds(10));
  auto b = desk.scheduler("b", {job_of("j", "*/30 * * * *")});
  desk.run({b.get()}, seconds(1));
  desk.run({a.get(), b.get()}, minutes(31));
  ASSERT_EQ(desk.launched.size(), 1U);
  EXPECT_EQ(desk.launched[0].scheduler, "b");
  EXPECT_EQ(desk.record("j").schedule, "*/30 * * * *");
  const auto told = std::ranges::count_if(
      desk.said, [](const std::string& line) { return line.starts_with("config_differs: job"); });
  EXPECT_EQ(told, 1);
}

TEST(Trap24, AMissedSlotKeepsItsOwnTime) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j", "0 * * * *")});
  desk.run({a.get()}, seconds(1));
  desk.clock.advance(minutes(80));
  desk.run({a.get()}, seconds(1));
  ASSERT_EQ(desk.launched.size(), 1U);
  const core::Slot& slot = desk.launched[0].slot;
  EXPECT_TRUE(slot.backfill);
  EXPECT_EQ(to_ms(slot.at) % 3'600'000, 0);
  EXPECT_LT(slot.at, desk.clock.wall() - minutes(15));
}

TEST(Trap25, AWrongClockNeitherCostsNorRunsAnything) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j", "* * * * * *", 3)});
  desk.run({a.get()}, seconds(1));
  const std::size_t before = desk.launched.size();
  desk.clock.step_wall(-hours(24) * 365 * 50);
  desk.run({a.get()}, minutes(1));
  EXPECT_EQ(desk.launched.size(), before);
  EXPECT_FALSE(desk.said.empty());  // and it says so
  desk.clock.step_wall(hours(24) * 365 * 60);
  desk.run({a.get()}, seconds(15));
  EXPECT_LE(desk.launched.size(), before + 1);  // the others wait behind it
  EXPECT_LE(desk.record("j").due.size(), 3U);
}

TEST(Trap26, TheSlotOfAChangeOfSchedulersIsNotLost) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j", "*/5 * * * *")});
  auto b = desk.scheduler("b", {job_of("j", "*/5 * * * *")});
  desk.run({a.get(), b.get()}, minutes(4));
  a.reset();  // just before it is due
  desk.run({b.get()}, minutes(1) + seconds(1));
  ASSERT_EQ(desk.launched.size(), 1U);
  EXPECT_LT(desk.clock.wall() - desk.launched[0].slot.at, seconds(2));
}

// It had started what it was assigned: nothing of it is in the way of the next.
TEST(Trap26, ASchedulerThatComesAfterAnotherStartsTheNextSlotOnTime) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j", "*/2 * * * * *")});
  desk.run({a.get()}, seconds(2));
  ASSERT_EQ(desk.launched.size(), 1U);
  desk.complete(*a, desk.launched.back());
  a.reset();
  auto b = desk.scheduler("b", {job_of("j", "*/2 * * * * *")});
  desk.run({b.get()}, seconds(2));
  ASSERT_EQ(desk.launched.size(), 2U);
  EXPECT_EQ(desk.launched[1].scheduler, "b");
  EXPECT_LT(desk.launched[1].at - desk.launched[0].at, Nanos(seconds(4)));
}

TEST(Trap27, WhatRunsIsKnownFromTheLeaseWhicheverSchedulerRunsIt) {
  Desk desk;
  const schedule::JobConfig job = job_of("j", "* * * * *");
  auto a = desk.scheduler("a", {job});
  auto b = desk.scheduler("b", {job});
  desk.run({a.get()}, minutes(1));
  ASSERT_EQ(desk.launched.size(), 1U);
  auto proof = desk.start(desk.launched[0]);
  ASSERT_TRUE(proof);
  for (int i = 0; i < 8; ++i) {  // a minute and more, renewed
    desk.run({b.get()}, seconds(10));
    ASSERT_TRUE(desk.leases.renew(proof->grip, job.terms.ttl).has_value());
  }
  EXPECT_EQ(desk.states("j"), (Strings{"skipped_overlap"}));
  const auto history = desk.slots.history("j", 10).value();
  EXPECT_EQ(history.ended[0].owner.text(), "runner-a");
  EXPECT_EQ(history.ended[0].token, proof->grip.token);
}

TEST(Trap27, AMarkThatADeadRunLeftSkipsNothingOnceItsLeaseIsGone) {
  Desk desk;
  const schedule::JobConfig job = job_of("j", "*/5 * * * *");
  auto a = desk.scheduler("a", {job});
  desk.run({a.get()}, minutes(5));
  ASSERT_TRUE(desk.start(desk.launched[0]).has_value());
  a.reset();  // dead, with its run
  auto b = desk.scheduler("b", {job});
  desk.run({b.get()}, minutes(5));
  EXPECT_EQ(desk.states("j"), (Strings{"lost"}));
  EXPECT_EQ(desk.launched.size(), 2U);  // the next slot runs on time
}

TEST(Trap28, AGlobalCapIsNotToldAsOverlap) {
  Desk desk;
  auto a = desk.scheduler("a", {job_of("j1", "* * * * *"), job_of("j2", "* * * * *")}, 1);
  desk.run({a.get()}, minutes(1));
  ASSERT_EQ(desk.launched.size(), 1U);
  const std::string idle = desk.launched[0].job.rule.name == "j1" ? "j2" : "j1";
  desk.run({a.get()}, minutes(1));
  EXPECT_EQ(desk.states(idle), (Strings{"skipped_limit"}));
}

// A store that does not answer.
class Broken final : public store::Store {
 public:
  explicit Broken(store::Store& inner) : inner_(inner) {}
  bool broken = false;
  const store::Capabilities& capabilities() const override { return inner_.capabilities(); }
  const store::Opening& opening() const override { return inner_.opening(); }
  Result<store::Reading> read(const std::vector<std::string>& keys) override {
    if (broken) return unavailable("out of order");
    return inner_.read(keys);
  }
  Result<store::Reading> scan(const ScanRange& range) override {
    if (broken) return unavailable("out of order");
    return inner_.scan(range);
  }
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    if (broken) return unavailable("out of order");
    return inner_.commit(steps, sync);
  }
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override { return inner_.watch(key); }
  Result<std::uint64_t> appended(const std::string& prefix) override {
    return inner_.appended(prefix);
  }
  Result<std::uint64_t> revision() override { return inner_.revision(); }

 private:
  store::Store& inner_;
};

TEST(Trap29, AFaultIsNoSkip) {
  Desk desk;
  Broken store(desk.store);
  service::SlotService slots(store, desk.ledger, desk.clock);
  auto a = desk.scheduler("a", {job_of("j", "*/5 * * * *")}, 0, &slots);
  desk.run({a.get()}, seconds(1));
  store.broken = true;
  desk.run({a.get()}, minutes(6));
  EXPECT_TRUE(desk.launched.empty());
  EXPECT_TRUE(desk.states("j").empty());
  EXPECT_NE(desk.said.back().find("out of order"), std::string::npos);
  store.broken = false;
  desk.run({a.get()}, seconds(30));
  EXPECT_EQ(desk.launched.size(), 1U);
}

TEST(Trap30, AWaitingSlotIsOnRecordAndIsNotDropped) {
  Desk desk;
  schedule::JobConfig job = job_of("j", "* * * * *", 0);
  job.rule.waits = true;
  auto a = desk.scheduler("a", {job});
  desk.run({a.get()}, minutes(1));
  auto proof = desk.start(desk.launched[0]);
  ASSERT_TRUE(proof);
  for (int i = 0; i < 7; ++i) {
    desk.run({a.get()}, seconds(10));
    ASSERT_TRUE(desk.leases.renew(proof->grip, job.terms.ttl).has_value());
  }
  ASSERT_EQ(desk.record("j").due.size(), 1U);
  EXPECT_TRUE(desk.states("j").empty());
  desk.end(*proof, job);
  a->finished("j");
  desk.run({a.get()}, seconds(1));
  ASSERT_EQ(desk.launched.size(), 2U);
  // Its patience ends: on record as well.
  const auto skipped = desk.slots.skip({.job = "j",
                                        .at = desk.launched[1].slot.at,
                                        .attempt = 1,
                                        .scheduler = "a",
                                        .why = core::SlotState::SkippedHeld,
                                        .by = {}});
  EXPECT_EQ(skipped.value().step, api::StepAnswer::Done);
  EXPECT_EQ(desk.states("j"), (Strings{"skipped_held", "ran"}));
}

TEST(Trap31, AnExpiredLeaseBlocksNothing) {
  Desk desk;
  const schedule::JobConfig job = job_of("j", "* * * * *");
  auto a = desk.scheduler("a", {job});
  desk.run({a.get()}, minutes(1));
  ASSERT_TRUE(desk.start(desk.launched[0]).has_value());  // ttl 30 s; its runner dies
  a->finished("j");
  desk.run({a.get()}, minutes(1));
  ASSERT_EQ(desk.launched.size(), 2U);
  desk.complete(*a, desk.launched[1]);
  EXPECT_EQ(desk.states("j"), (Strings{"ran", "lost"}));
}

TEST(Trap32, WhoeverClearsUpKeepsToTheJobsOwnAttempts) {
  for (const int retries : {0, 1}) {
    Desk desk;
    schedule::JobConfig job = job_of("j", "0 * * * *");
    job.rule.retries = retries;
    job.rule.backoff = seconds(1);
    auto a = desk.scheduler("a", {job});
    desk.run({a.get()}, hours(1));
    ASSERT_TRUE(desk.start(desk.launched[0]).has_value());
    a.reset();
    auto b = desk.scheduler("b", {job});
    desk.run({b.get()}, minutes(5));
    EXPECT_EQ(desk.launched.size(), static_cast<std::size_t>(1 + retries));
    EXPECT_EQ(desk.launched.back().slot.attempt, 1 + retries);
    EXPECT_EQ(desk.states("j"), retries == 0 ? Strings{"lost"} : Strings{});
  }
}

}  // namespace
}  // namespace stint::test
