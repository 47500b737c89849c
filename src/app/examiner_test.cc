// The doctor inside a server: one examination at a time, of bounded length, that ends with the
// server.
#include "app/examiner.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "store/memory/memory_store.h"

namespace stint::app {
namespace {

// The time of this machine, and a leap.
class LeapingClock final : public Clock {
 public:
  MonoTime mono() const override { return real_.mono() + Nanos(leapt_.load()); }
  WallTime wall() const override { return real_.wall(); }
  void leap(Nanos by) { leapt_ += by.count(); }

 private:
  os::SystemClock real_;
  std::atomic<std::int64_t> leapt_ = 0;
};

class ExaminerTest : public ::testing::Test {
 protected:
  // `limit` for one examination, and how long it is told again.
  Examiner::World world(Millis limit, Millis fresh) {
    return {.open = [this]() -> Result<std::shared_ptr<store::Store>> {
              ++opened_;
              return std::shared_ptr<store::Store>(&store_, [](store::Store*) {});
            },
            .generation = {store::Finding::Level::Ok, "generation", "1"},
            .limit = limit,
            .fresh = fresh};
  }
  server::Examined ended(Examiner& examiner) const {
    const MonoTime latest = clock_.mono() + std::chrono::seconds(120);
    while (true) {
      server::Examined seen = examiner.ask();
      if (!seen.running || clock_.mono() > latest) return seen;
      os::pause_for(Millis(5));
    }
  }

  bool left_behind() {
    return !store_.scan({.prefix = "doctor/", .after = "", .limit = 10})->entries.empty();
  }
  // Until it has written something.
  void well_under_way(Examiner& examiner) {
    EXPECT_TRUE(examiner.ask().running);
    const MonoTime latest = clock_.mono() + std::chrono::seconds(120);
    while (!left_behind() && clock_.mono() < latest) os::pause_for(Millis(1));
    ASSERT_TRUE(left_behind());
  }

  LeapingClock clock_;
  os::SystemRandom random_;
  store::MemoryStore store_{clock_};
  std::atomic<int> opened_ = 0;
};

TEST_F(ExaminerTest, OneAtATimeAndToldAgainWhileItIsFresh) {
  Examiner examiner(world(Millis(120'000), Millis(600'000)), clock_, random_);
  const server::Examined first = examiner.ask();
  EXPECT_TRUE(first.running);
  EXPECT_TRUE(examiner.ask().running);
  const server::Examined seen = ended(examiner);
  ASSERT_FALSE(seen.running);
  EXPECT_EQ(seen.fault, "");
  EXPECT_EQ(seen.began_at, first.began_at);
  ASSERT_TRUE(seen.ended_at.has_value());
  ASSERT_FALSE(seen.findings.empty());
  EXPECT_EQ(seen.findings.back().check, "generation");
  const int openings = opened_;
  EXPECT_EQ(examiner.ask().findings.size(), seen.findings.size());
  EXPECT_EQ(opened_, openings) << "a fresh one is told, not made anew";
  for (const auto& finding : seen.findings) {
    if (finding.check != "atomic") continue;
    EXPECT_EQ(finding.level, "ok") << finding.text;
    EXPECT_TRUE(finding.text.starts_with("8 threads")) << finding.text;
  }
  EXPECT_FALSE(left_behind());
}

TEST_F(ExaminerTest, WhatTakesTooLongIsEndedSaysSoAndLeavesNothing) {
  constexpr Millis kLimit(600'000);
  Examiner examiner(world(kLimit, Millis(6'000'000)), clock_, random_);
  well_under_way(examiner);
  clock_.leap(kLimit);
  const server::Examined seen = ended(examiner);
  ASSERT_FALSE(seen.running);
  EXPECT_NE(seen.fault.find("was not done within"), std::string::npos) << seen.fault;
  EXPECT_FALSE(left_behind());
}

// What kept the contenders from trying is no finding on the store.
TEST_F(ExaminerTest, ContendersThatCannotOpenAreAFaultAndNoFinding) {
  Examiner::World crowded = world(Millis(120'000), Millis(600'000));
  crowded.open = [this]() -> Result<std::shared_ptr<store::Store>> {
    if (++opened_ > 2) return Error{Code::Denied, "too many clients already"};
    return std::shared_ptr<store::Store>(&store_, [](store::Store*) {});
  };
  Examiner examiner(crowded, clock_, random_);
  const server::Examined seen = ended(examiner);
  ASSERT_FALSE(seen.running);
  EXPECT_NE(seen.fault.find("too many clients"), std::string::npos) << seen.fault;
  for (const auto& finding : seen.findings) EXPECT_NE(finding.level, "fail") << finding.text;
  EXPECT_FALSE(left_behind());
}

TEST_F(ExaminerTest, WhoIsToldBeginsNone) {
  Examiner examiner(world(Millis(1), Millis(600'000)), clock_, random_);
  EXPECT_FALSE(examiner.told().began_at.has_value());
  EXPECT_EQ(opened_, 0);
  const server::Examined seen = ended(examiner);
  EXPECT_EQ(examiner.told().began_at, seen.began_at);
}

TEST_F(ExaminerTest, AnOldOneIsMadeAnew) {
  // Nothing is fresh: whoever asks after the end begins another one. Each opens the store twice.
  Examiner examiner(world(Millis(1), Millis(0)), clock_, random_);
  const MonoTime latest = clock_.mono() + std::chrono::seconds(120);
  while (opened_ <= 2 && clock_.mono() < latest) {
    (void)examiner.ask();
    os::pause_for(Millis(1));
  }
  EXPECT_GT(opened_, 2);
}

TEST_F(ExaminerTest, ItEndsWithTheServer) {
  const MonoTime began = clock_.mono();
  {
    Examiner examiner(world(Millis(600'000), Millis(0)), clock_, random_);
    well_under_way(examiner);
  }
  EXPECT_FALSE(left_behind());
  // A whole examination looks at the clock alone for two seconds, and the store never stops.
  EXPECT_LT(clock_.mono() - began, std::chrono::seconds(60));
}

TEST_F(ExaminerTest, AStoreThatCannotBeOpenedIsAFaultAndNoFinding) {
  Examiner::World broken = world(Millis(1000), Millis(600'000));
  broken.open = []() -> Result<std::shared_ptr<store::Store>> {
    return unavailable("the disk is gone");
  };
  Examiner examiner(broken, clock_, random_);
  const server::Examined seen = ended(examiner);
  EXPECT_EQ(seen.fault, "the disk is gone");
  EXPECT_TRUE(seen.findings.empty());
}

}  // namespace
}  // namespace stint::app
