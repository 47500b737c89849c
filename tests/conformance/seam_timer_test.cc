// The seam: timers, and demands on them that the store judges inside the commit.
#include "tests/conformance/seam_fixture.h"

namespace stint::testing {
namespace {

using Op = Step::TimerOp;

class SeamTimer : public SeamTest {
 protected:
  Millis brief() const { return std::max(site_->short_ttl(), store_->capabilities().smallest_ttl); }
  void start(const std::string& key, Millis ttl) {
    ASSERT_TRUE(commit({timed(set(key, "v"), Op::Start, ttl)}));
  }
  bool holds(const std::string& key, TimerState state) {
    return conflict({demanding(check(key), state)}) == -1;
  }
};
STINT_FOR_EVERY_STORE(SeamTimer);

TEST_P(SeamTimer, DemandsAreMetByExactlyTheStateThatItHas) {
  start("run", kLong);
  start("fire", brief());
  commit({set("none", "v")});
  ASSERT_TRUE(wait_until_fired("fire"));
  for (const auto& [key, is] : {std::pair{"none", TimerState::None},
                                {"run", TimerState::Running},
                                {"fire", TimerState::Fired},
                                {"absent", TimerState::None}}) {
    for (const TimerState asked : {TimerState::None, TimerState::Running, TimerState::Fired}) {
      EXPECT_EQ(holds(key, asked), asked == is) << key;
    }
  }
}

TEST_P(SeamTimer, DemandsAreJudgedForEveryKindOfStep) {
  start("k", kLong);
  EXPECT_EQ(conflict({demanding(set("k", "w"), TimerState::Fired)}), 0);
  EXPECT_EQ(conflict({demanding(touch("k"), TimerState::Fired)}), 0);
  EXPECT_EQ(conflict({demanding(remove("k"), TimerState::Fired)}), 0);
  EXPECT_EQ(get("k").value, "v");
}

// EVIDENCE-OF: G3 G4
TEST_P(SeamTimer, IsJudgedAtTheCommitAndNotAtTheRead) {
  start("k", brief());
  const store::Entry read = get("k");
  EXPECT_EQ(read.timer.state, TimerState::Running);
  ASSERT_TRUE(wait_until_fired("k"));
  Step renew =
      timed(demanding(seen(touch("k"), read.version), TimerState::Running), Op::Extend, kLong);
  EXPECT_EQ(conflict({renew}), 0);
  EXPECT_EQ(get("k").timer.state, TimerState::Fired);
}

// What a renewal is: the timer extended, the owner unchanged.
// EVIDENCE-OF: G3 G8
TEST_P(SeamTimer, AnExtensionNeedsEveryVersionThatItNames) {
  start("alive/r", kLong);
  ASSERT_TRUE(commit({set("own/r", "me")}));
  const store::Entry alive = get("alive/r");
  const store::Entry own = get("own/r");
  Step renew = timed(demanding(seen(touch("alive/r"), alive.version), TimerState::Running),
                     Op::Extend, kLong * 2);
  ASSERT_TRUE(commit({set("own/r", "another")}));
  for (const auto sync : {store::Sync::Relaxed, store::Sync::Durable}) {
    const auto answer = store_->commit({renew, seen(check("own/r"), own.version)}, sync);
    ASSERT_TRUE(answer) << answer.error().message;
    const auto* refused = std::get_if<store::Conflict>(&*answer);
    ASSERT_NE(refused, nullptr);
    EXPECT_EQ(refused->step, 1U);
  }
  EXPECT_EQ(get("alive/r").timer.ttl, alive.timer.ttl) << "and nothing was extended";
}

// EVIDENCE-OF: G4
TEST_P(SeamTimer, NeverFiresEarly) {
  const MonoTime before = site_->clock().mono();
  start("k", brief());
  ASSERT_TRUE(wait_until_fired("k"));
  EXPECT_GE(site_->clock().mono() - before, Nanos(brief()));
}

TEST_P(SeamTimer, ShowsWhatIsLeftNeverMoreThanItsLength) {
  start("k", kLong);
  const Timer timer = get("k").timer;
  EXPECT_EQ(timer.state, TimerState::Running);
  if (timer.ttl) {
    EXPECT_EQ(*timer.ttl, kLong);
  }
  if (timer.remaining) {
    EXPECT_LE(*timer.remaining, kLong);
    EXPECT_GT(*timer.remaining, kLong - Millis(60'000));
  }
}

TEST_P(SeamTimer, ShowsAFiredOneWithNothingLeft) {
  start("k", brief());
  ASSERT_TRUE(wait_until_fired("k"));
  const Timer timer = get("k").timer;
  if (timer.remaining) {
    EXPECT_LE(timer.remaining->count(), 0);
  }
}

TEST_P(SeamTimer, KeepLeavesItAlone) {
  start("k", kLong);
  ASSERT_TRUE(commit({set("k", "w")}));
  EXPECT_EQ(get("k").timer.state, TimerState::Running);
  ASSERT_TRUE(commit({set("new", "w")}));
  EXPECT_EQ(get("new").timer.state, TimerState::None);
}

TEST_P(SeamTimer, StopTakesItAway) {
  start("k", kLong);
  ASSERT_TRUE(commit({timed(touch("k"), Op::Stop)}));
  EXPECT_EQ(get("k").timer.state, TimerState::None);
  EXPECT_FALSE(get("k").timer.remaining);
  ASSERT_TRUE(commit({timed(set("k", "v"), Op::Stop)}));
}

TEST_P(SeamTimer, StartBeginsAnewAlsoShorterAndAfterFiring) {
  start("k", kLong);
  start("k", brief());
  ASSERT_TRUE(wait_until_fired("k"));
  ASSERT_TRUE(commit({timed(demanding(touch("k"), TimerState::Fired), Op::Start, kLong)}));
  EXPECT_EQ(get("k").timer.state, TimerState::Running);
}

// EVIDENCE-OF: G3
TEST_P(SeamTimer, ExtendNeverShortens) {
  start("k", kLong);
  ASSERT_TRUE(commit({timed(demanding(touch("k"), TimerState::Running), Op::Extend, brief())}));
  const Timer timer = get("k").timer;
  if (timer.remaining) {
    EXPECT_GT(*timer.remaining, kLong - Millis(60'000));
  }
  start("brief", brief());
  ASSERT_TRUE(wait_until_fired("brief"));
  EXPECT_EQ(get("k").timer.state, TimerState::Running);
}

TEST_P(SeamTimer, ExtendLengthensARunningOne) {
  start("k", brief());
  start("plain", brief());
  ASSERT_TRUE(commit({timed(demanding(touch("k"), TimerState::Running), Op::Extend, kLong)}));
  ASSERT_TRUE(wait_until_fired("plain"));
  EXPECT_EQ(get("k").timer.state, TimerState::Running);
}

TEST_P(SeamTimer, GoesWithItsRecord) {
  start("k", kLong);
  ASSERT_TRUE(commit({remove("k")}));
  EXPECT_TRUE(holds("k", TimerState::None));
  ASSERT_TRUE(commit({set("k", "v")}));
  EXPECT_EQ(get("k").timer.state, TimerState::None);
}

TEST_P(SeamTimer, TellsTheTtlThatItGranted) {
  const auto done = commit({check("x"), timed(set("k", "v"), Op::Start, brief())});
  ASSERT_TRUE(done);
  ASSERT_EQ(done->granted_ttl.size(), 2U);
  EXPECT_GE(done->granted_ttl[1], brief());
}

TEST_P(SeamTimer, FiringChangesNoVersionAndRemovesNothing) {
  start("k", brief());
  const store::Version version = get("k").version;
  ASSERT_TRUE(wait_until_fired("k"));
  EXPECT_EQ(get("k").version, version);
  EXPECT_EQ(get("k").value, "v");
}

}  // namespace
}  // namespace stint::testing
