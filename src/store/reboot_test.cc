#include "store/reboot.h"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

using std::chrono::seconds;

StoredTimer timer(std::size_t boot, int fires_at, int ttl) {
  return {.boot = boot, .fires_at = seconds(fires_at), .ttl = seconds(ttl)};
}
Boot boot(int first_open, int last_commit) {
  return {.first_open = seconds(first_open), .last_commit = seconds(last_commit)};
}

TEST(Reboot, LeavesTimersOfThePresentBootAlone) {
  EXPECT_EQ(fires_now(timer(0, 50, 30), {boot(10, 0)}), seconds(50));
  EXPECT_EQ(fires_now(timer(1, 5, 30), {boot(10, 100), boot(3, 0)}), seconds(5));
}

// EVIDENCE-OF: G3 G4
TEST(Reboot, GivesATimerThatStillRanItsFullLengthOnce) {
  EXPECT_EQ(fires_now(timer(0, 101, 30), {boot(10, 100), boot(3, 0)}), seconds(33));
}

// EVIDENCE-OF: G3
TEST(Reboot, NeverRevivesATimerThatHadRunOut) {
  const Boots boots = {boot(10, 100), boot(3, 0)};
  EXPECT_LT(fires_now(timer(0, 100, 30), boots), boots.back().first_open);
  EXPECT_LT(fires_now(timer(0, 99, 30), boots), boots.back().first_open);
}

TEST(Reboot, CarriesATimerOverSeveralBootsOnlyWhileItRunsInEach) {
  // It got until 33 on the second boot, whose log ends at 20: it runs on into the third.
  EXPECT_EQ(fires_now(timer(0, 101, 30), {boot(10, 100), boot(3, 20), boot(7, 0)}), seconds(37));
  // The second boot's log ends at 40: it had run out there.
  EXPECT_LT(fires_now(timer(0, 101, 30), {boot(10, 100), boot(3, 40), boot(7, 0)}), seconds(7));
}

}  // namespace
}  // namespace stint::store
