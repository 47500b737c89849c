// The doctor: passes every store of the conformance list, and sees through those that only pretend.
#include "probe/doctor.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "tests/conformance/stores.h"
#include "tests/support/lying_stores.h"

namespace stint::testing {
namespace {

using store::Finding;
using Open = std::function<std::unique_ptr<store::Store>()>;

Result<probe::Tally> contest_of_threads(const Open& open, const probe::Contest& contest) {
  std::vector<Result<probe::Tally>> tallies(static_cast<std::size_t>(contest.contenders), Error{});
  std::vector<std::thread> threads;
  for (auto& tally : tallies) {
    threads.emplace_back([&] { tally = probe::contend(*open(), contest, &os::pause_for); });
  }
  for (std::thread& thread : threads) thread.join();
  probe::Tally sum;
  for (const auto& tally : tallies) {
    if (!tally) return tally.error();
    sum.acknowledged += tally->acknowledged;
    sum.unknown += tally->unknown;
  }
  return sum;
}

// Every finding by its check; the worst of several.
std::map<std::string, Finding> diagnosis(const Open& open, const Clock& clock,
                                         const std::function<void(Nanos)>& pause) {
  os::SystemRandom random;
  std::map<std::string, Finding> out;
  const auto done = probe::examine(
      {.open = [&] { return Result<std::unique_ptr<store::Store>>(open()); },
       .contest = [&](const probe::Contest& contest) { return contest_of_threads(open, contest); },
       .wait =
           [](int fd, MonoTime) {
             return bool{os::wait_readable({fd}, os::SystemClock().mono() + Millis(2000)).front()};
           },
       .pause = pause,
       .clock = clock,
       .random = random,
       .tell =
           [&](const Finding& finding) {
             auto& known = out[finding.check];
             if (known.check.empty() || finding.level > known.level) known = finding;
           }});
  EXPECT_TRUE(done.has_value()) << done.error().message;
  return out;
}

int failures(const std::map<std::string, Finding>& findings) {
  int count = 0;
  for (const auto& [check, finding] : findings) {
    if (finding.level == Finding::Level::Fail) ++count;
  }
  return count;
}

class Doctor : public ::testing::TestWithParam<StoreCase> {};

TEST_P(Doctor, FindsNothingWrongAndLeavesNothingBehind) {
  const auto site = GetParam().make();
  const auto pause = [&](Nanos length) {
    const MonoTime until = site->clock().mono() + length;
    while (site->clock().mono() < until) site->tick();
  };
  const auto findings = diagnosis([&] { return site->open(); }, site->clock(), pause);
  for (const auto& [check, finding] : findings) {
    EXPECT_NE(finding.level, Finding::Level::Fail) << check << ": " << finding.text;
  }
  for (const char* check : {"whole", "visible", "atomic", "clock", "timers", "wake-up"}) {
    EXPECT_TRUE(findings.contains(check)) << check;
  }
  if (site->open()->capabilities().clock != store::Capabilities::ClockKind::TimersOnly) {
    for (const char* check : {"skew", "drift"}) {
      ASSERT_TRUE(findings.contains(check)) << check;
      EXPECT_EQ(findings.at(check).level, Finding::Level::Ok) << findings.at(check).text;
      EXPECT_NE(findings.at(check).text.find("(\u00b1"), std::string::npos)
          << findings.at(check).text;
    }
  }
  const auto left = site->open()->scan({.prefix = "doctor/", .after = "", .limit = 10});
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->entries.empty());
}

INSTANTIATE_TEST_SUITE_P(Store, Doctor, ::testing::ValuesIn(stores()),
                         [](const auto& store) { return store.param.name; });

class LyingStore : public ::testing::Test {
 protected:
  FakeClock clock_;
  std::shared_ptr<store::Store> truth_ = std::make_shared<store::MemoryStore>(clock_);
  const std::function<void(Nanos)> pause_ = [this](Nanos length) { clock_.advance(length); };
};

TEST_F(LyingStore, ThatIgnoresConditionsIsSeenThrough) {
  const auto findings =
      diagnosis([&] { return std::make_unique<test::LastWriterWins>(truth_); }, clock_, pause_);
  EXPECT_EQ(findings.at("whole").level, Finding::Level::Fail);
  EXPECT_GE(failures(findings), 1);
}

// With conditions ignored only now and then the whole-commit check may pass; the counting does not.
TEST_F(LyingStore, LosesCountsWhenTheLastWriterWins) {
  const auto open = [&] { return std::make_unique<test::LastWriterWins>(truth_); };
  const probe::Contest contest{.key = "k"};
  const auto tally = contest_of_threads(open, contest);
  ASSERT_TRUE(tally);
  EXPECT_EQ(tally->acknowledged, 120U);
  EXPECT_LT(probe::read_number(*truth_, "k").value(), 120U);
}

TEST_F(LyingStore, ThatIsOnlyEventuallyConsistentIsSeenThrough) {
  const auto findings = diagnosis(
      [&] { return std::make_unique<test::EventuallyConsistent>(truth_); }, clock_, pause_);
  EXPECT_EQ(findings.at("visible").level, Finding::Level::Fail);
}

// The doctor pauses 80 times while it looks at the clock, then while it waits for a timer.
TEST_F(LyingStore, WhoseClockJumpsIsSeenThrough) {
  for (const auto& [at_pause, check] : {std::pair(10, "clock"), std::pair(82, "timers")}) {
    test::JumpingClock jumping(clock_);
    const auto store = std::make_shared<store::MemoryStore>(jumping);
    int pauses = 0;
    const auto findings =
        diagnosis([&] { return std::make_unique<test::SharedStore>(store); }, clock_,
                  [&, at = at_pause](Nanos length) {
                    clock_.advance(length);
                    if (++pauses == at) jumping.jump();
                  });
    EXPECT_EQ(findings.at(check).level, Finding::Level::Fail) << findings.at(check).text;
  }
}

}  // namespace
}  // namespace stint::testing
