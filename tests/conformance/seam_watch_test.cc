// The seam: watches wake on every change that comes after they were made.
#include <thread>

#include "os/clock.h"
#include "os/pause.h"
#include "tests/conformance/seam_fixture.h"

namespace stint::testing {
namespace {

class SeamWatch : public SeamTest {
 protected:
  static bool woken(Watch& watch, Millis within) {
    const MonoTime until = clock().mono() + within;
    return os::wait_readable({watch.fd()}, until).front();
  }
  static const Clock& clock();
  std::unique_ptr<Watch> watch(const std::string& key) {
    return std::move(store_->watch(key).value());
  }
};
STINT_FOR_EVERY_STORE(SeamWatch);

// Descriptors are waited for in real time, whatever clock the store has.
const Clock& SeamWatch::clock() {
  static const os::SystemClock system;
  return system;
}

constexpr Millis kSoon{60'000};

TEST_P(SeamWatch, WakesForASetARemovalAndAnAppend) {
  const auto record = watch("k/r");
  const auto log = watch("log/");
  commit({set("k/r", "v")});
  EXPECT_TRUE(woken(*record, kSoon));
  record->acknowledge();
  commit({remove("k/r")});
  EXPECT_TRUE(woken(*record, kSoon));
  commit({append("log/", "x")});
  EXPECT_TRUE(woken(*log, kSoon));
}

TEST_P(SeamWatch, IsQuietAfterItWasAcknowledged) {
  const auto w = watch("k/r");
  commit({set("k/r", "v")});
  ASSERT_TRUE(woken(*w, kSoon));
  w->acknowledge();
  EXPECT_FALSE(woken(*w, Millis(0)));
}

TEST_P(SeamWatch, StaysAwakeUntilAcknowledged) {
  const auto w = watch("k/r");
  commit({set("k/r", "v")});
  EXPECT_TRUE(woken(*w, kSoon));
  EXPECT_TRUE(woken(*w, Millis(0)));
}

TEST_P(SeamWatch, ATouchACheckAndAConflictAreNoChange) {
  if (store_->capabilities().clock == store::Capabilities::ClockKind::TimersOnly) {
    GTEST_SKIP() << "its stream may begin after the touch, and then wakes for nothing";
  }
  commit({set("k/r", "v")});
  const auto w = watch("k/r");
  commit({timed(touch("k/r"), Step::TimerOp::Start, kLong)});
  commit({check("k/r")});
  conflict({absent(set("k/r", "w"))});
  EXPECT_FALSE(woken(*w, Millis(0)));
}

TEST_P(SeamWatch, WakesForACommitOfAnotherOpening) {
  const auto w = watch("k/r");
  ASSERT_TRUE(site_->open()->commit({set("k/r", "v")}, store::Sync::Relaxed).has_value());
  EXPECT_TRUE(woken(*w, kSoon));
}

TEST_P(SeamWatch, WakesEveryWatcher) {
  const auto a = watch("k/r");
  const auto b = watch("k/r");
  commit({set("k/r", "v")});
  EXPECT_TRUE(woken(*a, kSoon));
  EXPECT_TRUE(woken(*b, kSoon));
}

TEST_P(SeamWatch, MayOutliveTheStoreThatMadeIt) {
  const auto w = watch("k/r");
  store_.reset();
  w->acknowledge();
}

// Register, acknowledge, look, sleep: no change is slept through, whatever the two threads do.
TEST_P(SeamWatch, NeverSleepsThroughAChange) {
  constexpr int kChanges = 200;
  const auto w = watch("k/r");
  std::jthread writer([&] {
    for (int i = 1; i <= kChanges; ++i) {
      EXPECT_TRUE(
          store_->commit({set("k/r", std::to_string(i))}, store::Sync::Relaxed).has_value());
    }
  });
  std::string last;
  while (last != std::to_string(kChanges)) {
    ASSERT_TRUE(woken(*w, kSoon)) << "slept through a change after " << last;
    w->acknowledge();
    last = get("k/r").value;
  }
}

}  // namespace
}  // namespace stint::testing
