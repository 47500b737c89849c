// A lease is lost in each kind of sandbox: the whole tree is ended in time, and nobody else is
// harmed. G7
#include <gtest/gtest.h>
#include <signal.h>

#include "base/text.h"
#include "tests/sandbox/world.h"

namespace stint::test {
namespace {

constexpr Millis kTtl{2000};
const std::vector<std::string> kKinds = {"plain", "session", "detached"};
const std::vector<std::string> kLeaderless = {"main", "leaderless", "detached-leaderless"};

std::vector<Place> places() {
  std::vector<Place> out = {
      {.name = "Plain"},
      {.name = "NoCgroup", .options = {"--no-cgroup"}},
      {.name = "PidfdMissing", .options = {"--no-cgroup", "--refuse", "pidfd=ENOSYS"}},
      {.name = "PidfdForbidden", .options = {"--no-cgroup", "--refuse", "pidfd=EPERM"}},
      {.name = "OldKernel", .options = {"--no-cgroup", "--refuse", "new=ENOSYS"}},
      {.name = "OldKernelWithCgroup", .options = {"--refuse", "new=ENOSYS"}},
      {.name = "NewCallsForbidden", .options = {"--no-cgroup", "--refuse", "new=EPERM"}},
      {.name = "NewCallsForbiddenOldClone",
       .options = {"--no-cgroup", "--refuse", "old-clone=EPERM"}},
      {.name = "NoProc", .proc_is_ours = false, .options = {"--no-cgroup", "--no-proc"}},
      {.name = "NoProcWithCgroup", .proc_is_ours = false, .options = {"--no-proc"}},
      {.name = "NoProcNoNewCalls",
       .proc_is_ours = false,
       .options = {"--no-cgroup", "--no-proc", "--refuse", "new=EPERM"}},
      {.name = "ForeignProc", .proc_is_ours = false, .options = {"--no-cgroup", "--foreign-proc"}},
      {.name = "ForeignProcSameNumber",
       .proc_is_ours = false,
       .options = {"--no-cgroup", "--same-number"}},
      {.name = "PidNamespaceBegunByTheGuardian",
       .proc_is_ours = false,
       .options = {"--no-cgroup", "--no-fork"}},
      {.name = "Nobody", .options = {"--nobody"}, .others = true},
      {.name = "NobodyHidden", .options = {"--nobody", "--hidepid"}, .others = true},
      {.name = "Everything", .options = {"--everything"}},
      {.name = "EverythingNoCgroup", .options = {"--everything", "--no-cgroup"}},
      {.name = "Chroot",
       .proc_is_ours = false,
       .options = {"--no-cgroup"},
       .root_of_its_own = true},
      {.name = "Bubblewrap",
       .before = {"bwrap", "--dev-bind", "/", "/", "--unshare-pid", "--unshare-ipc",
                  "--unshare-uts", "--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys",
                  "--"}},
      {.name = "Unshare", .before = {"unshare", "--pid", "--fork", "--mount-proc", "--"}},
      {.name = "UnshareWithTheOldProc",
       .proc_is_ours = false,
       .before = {"unshare", "--pid", "--fork", "--"}},
  };
  return out;
}

class Sandboxes : public ::testing::TestWithParam<Place> {};

#define READY(confined)                                                                \
  if (const std::string why = (confined).missing(); !why.empty()) GTEST_SKIP() << why; \
  ASSERT_TRUE((confined).working()) << (confined).err()

void expect_report(Confined& confined, int code) {
  const auto report = confined.report();
  ASSERT_TRUE(report) << "run does not end: " << confined.err();
  EXPECT_EQ(report->exit_code, code) << confined.err();
  EXPECT_EQ(report->bystanders, report->of) << "a bystander was harmed";
}

// EVIDENCE-OF: G7
TEST_P(Sandboxes, AtTheDeadlineTheWholeTreeIsDeadBeforeTheLeaseIsFree) {
  Confined confined(GetParam(), kKinds);
  READY(confined);
  confined.take_store_away();
  EXPECT_TRUE(confined.work_ends(kTtl)) << confined.err();
  expect_report(confined, 75);
}

// Their first threads have ended: /proc shows zombies, which work on.
// EVIDENCE-OF: G7
TEST_P(Sandboxes, ProcessesWithoutTheirFirstThreadAreEndedToo) {
  Confined confined(GetParam(), kLeaderless);
  READY(confined);
  confined.take_store_away();
  EXPECT_TRUE(confined.work_ends(kTtl)) << confined.err();
  expect_report(confined, 75);
}

// EVIDENCE-OF: G7
TEST_P(Sandboxes, SupervisorStoppedTheGuardianEndsTheTreeInTimeAndWakesIt) {
  Confined confined(GetParam(), kKinds);
  READY(confined);
  const pid_t supervisor = confined.supervisor();
  ::kill(supervisor, SIGSTOP);
  EXPECT_TRUE(confined.work_ends(kTtl)) << confined.err();
  // There the guardian has no number for it.
  if (GetParam().name == "PidNamespaceBegunByTheGuardian") ::kill(supervisor, SIGCONT);
  expect_report(confined, 75);
}

// EVIDENCE-OF: G7
TEST_P(Sandboxes, SupervisorKilledTheGuardianEndsTheTreeAtOnce) {
  Confined confined(GetParam(), kKinds);
  READY(confined);
  ::kill(confined.supervisor(), SIGKILL);
  EXPECT_TRUE(confined.work_ends(Millis(1000))) << confined.err();
  expect_report(confined, 128 + SIGKILL);
}

// EVIDENCE-OF: G7
TEST_P(Sandboxes, GuardianStoppedTheSupervisorActsAlone) {
  Confined confined(GetParam(), kKinds);
  READY(confined);
  ::kill(confined.guardian(), SIGSTOP);
  confined.take_store_away();
  EXPECT_TRUE(confined.work_ends(kTtl)) << confined.err();
  expect_report(confined, 75);
}

// EVIDENCE-OF: G7
TEST_P(Sandboxes, GuardianKilledTheSupervisorEndsTheTreeAtOnce) {
  Confined confined(GetParam(), kKinds);
  READY(confined);
  ::kill(confined.guardian(), SIGKILL);
  EXPECT_TRUE(confined.work_ends(Millis(1000))) << confined.err();
  const auto report = confined.report();
  ASSERT_TRUE(report) << "run does not end: " << confined.err();
  EXPECT_EQ(report->bystanders, report->of) << "a bystander was harmed";
}

// The command ends; what it left behind ends with it, and the run says what the command said.
TEST_P(Sandboxes, WhatACommandLeavesBehindEndsWithIt) {
  std::vector<std::string> kinds = kKinds;
  kinds.emplace_back("ends");
  Confined confined(GetParam(), kinds, {"--ttl", "10s", "--grace", "100ms"});
  if (const std::string why = confined.missing(); !why.empty()) GTEST_SKIP() << why;
  expect_report(confined, 0);
  EXPECT_FALSE(confined.work_alive());
}

// A child that the supervisor had before it began is not of the tree. Where nobody can tell them
// apart, and the guardian is gone, it is the work that lives: nothing is released.
TEST_P(Sandboxes, ChildrenThatTheProgramCameWithAreNotTheWork) {
  Place place = GetParam();
  if (place.name == "PidNamespaceBegunByTheGuardian") GTEST_SKIP() << "it begins with a child";
  place.options.emplace_back("--children");
  Confined confined(place, kKinds);
  READY(confined);
  ::kill(confined.guardian(), SIGKILL);
  if (!place.proc_is_ours) {
    ASSERT_TRUE(confined.report()) << "run does not end: " << confined.err();
    EXPECT_NE(confined.err().find("the lease is not released"), std::string::npos)
        << confined.err();
  } else {
    EXPECT_TRUE(confined.work_ends(Millis(1000))) << confined.err();
    ASSERT_TRUE(confined.report()) << "run does not end: " << confined.err();
  }
  EXPECT_EQ(confined.children_of_its_own(), 3) << "a bystander was harmed";
}

INSTANTIATE_TEST_SUITE_P(Each, Sandboxes, ::testing::ValuesIn(places()),
                         [](const auto& one) { return one.param.name; });

// Nothing can be seen there, and who detaches itself is lost.
const Place kBlind = {.name = "Blind",
                      .options = {"--no-cgroup", "--no-proc", "--refuse", "subreaper"}};

TEST(Blind, NothingIsStartedAndNoLeaseTaken) {
  Confined confined(kBlind, {"plain"});
  if (const std::string why = confined.missing(); !why.empty()) GTEST_SKIP() << why;
  expect_report(confined, 1);
  EXPECT_FALSE(confined.working());
  EXPECT_NE(confined.err().find("--unsafe-tree goes on"), std::string::npos) << confined.err();
  const Finished shown =
      run({.argv = {STINT_BINARY, "--store", cat("sqlite:", confined.state("stint/stint.db")),
                    "show", "r", "--json"}});
  EXPECT_EQ(shown.out.find(R"("token":1)"), std::string::npos) << shown.out;
}

TEST(Blind, UnsafeTreeGoesOn) {
  Confined confined(kBlind, {"plain"}, {"--ttl", "2s", "--unsafe-tree"});
  READY(confined);
  EXPECT_NE(confined.err().find("going on all the same"), std::string::npos) << confined.err();
  confined.take_store_away();
  EXPECT_TRUE(confined.work_ends(kTtl)) << confined.err();
  expect_report(confined, 75);
}

// A process in a cgroup is seen there.
TEST(Blind, ACgroupEndsWhatNobodyAdopts) {
  Confined confined({.name = "", .options = {"--no-proc", "--refuse", "subreaper"}}, kKinds);
  if (!confined.working() && confined.err().find("no cgroup") != std::string::npos)
    GTEST_SKIP() << "no cgroup can be had here";
  READY(confined);
  confined.take_store_away();
  EXPECT_TRUE(confined.work_ends(kTtl)) << confined.err();
  expect_report(confined, 75);
}

// A process of root's, which a plain user can neither see there nor kill.
TEST(Hidden, WhatCannotBeSeenDeadKeepsTheLease) {
  Place place{.name = "", .options = {"--nobody", "--hidepid"}, .others = true};
  place.setuid = true;
  Confined confined(place, {"root"});
  READY(confined);
  confined.take_store_away();
  const auto report = confined.report(Millis(30'000));
  ASSERT_TRUE(report) << "run does not end: " << confined.err();
  EXPECT_EQ(report->exit_code, 75) << confined.err();
  EXPECT_NE(confined.err().find("could not be killed: processes that cannot be seen here"),
            std::string::npos)
      << confined.err();
  EXPECT_TRUE(confined.work_alive());
}

// It is said before the work starts.
TEST(TopOnly, IsSaidInOneLine) {
  Confined confined({.name = "", .options = {"--no-cgroup", "--no-proc"}}, {"ends"});
  if (const std::string why = confined.missing(); !why.empty()) GTEST_SKIP() << why;
  expect_report(confined, 0);
  EXPECT_TRUE(confined.err().starts_with("stint: /proc does not show our processes"))
      << confined.err();
}

// The guardian before it was the supervisor's child too, and is no stranger.
TEST(TopOnly, ASecondTreeIsWatchedAsTheFirst) {
  Confined confined({.name = "", .options = {"--no-cgroup", "--no-proc"}}, kKinds,
                    {"--ttl", "5s", "--restart"});
  READY(confined);
  const Finished revoked = confined.revoke("1");
  ASSERT_EQ(revoked.exit_code, 0) << revoked.err;
  ASSERT_TRUE(confined.working_again()) << confined.err();
  ::kill(confined.guardian(), SIGKILL);
  EXPECT_TRUE(confined.work_ends(Millis(1000))) << confined.err();
  ASSERT_TRUE(confined.report()) << "run does not end: " << confined.err();
}

// A guardian that is stopped whenever it is woken cannot do what it is asked to.
TEST(TopOnly, AGuardianThatStandsInTheWayIsEnded) {
  Confined confined({.name = "", .options = {"--no-cgroup", "--no-proc"}}, kKinds);
  READY(confined);
  confined.take_store_away();
  const pid_t guardian = confined.guardian();
  EXPECT_TRUE(wait_until(
      [&] {
        ::kill(guardian, SIGSTOP);
        return !confined.work_alive();
      },
      Millis(10'000)))
      << confined.err();
  expect_report(confined, 75);
}

}  // namespace
}  // namespace stint::test
