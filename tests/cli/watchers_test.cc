// The two watchers: whatever is frozen or killed, the tree is dead before the lease can be
// another's.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;

constexpr Millis kTtl{2000};

struct Pids {
  pid_t supervisor = 0;
  pid_t guardian = 0;
  pid_t child = 0;
  pid_t grandchild = 0;
};

// A run whose job ignores SIGTERM and whose grandchild has left its session.
class StubbornRun {
 public:
  StubbornRun()
      : run_(stint_.command({"run", "r", "--ttl", "2s", "-q", "--", "sh", "-c",
                             cat("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >",
                                 grandchild_file(), "; while :; do sleep 1; done' & echo $$ >",
                                 child_file(), "; while :; do sleep 1; done")})) {
    const auto started = [&] {
      return parse_digits(trim(read_text(child_file()))) &&
             parse_digits(trim(read_text(grandchild_file())));
    };
    EXPECT_TRUE(wait_until(started)) << run_.err();
    pids_.supervisor = run_.pid();
    pids_.child = static_cast<pid_t>(parse_digits(trim(read_text(child_file()))).value_or(0));
    pids_.grandchild =
        static_cast<pid_t>(parse_digits(trim(read_text(grandchild_file()))).value_or(0));
    for (const pid_t pid : descendants(pids_.supervisor)) {
      const auto below = descendants(pid);
      if (std::find(below.begin(), below.end(), pids_.child) != below.end()) pids_.guardian = pid;
    }
    EXPECT_GT(pids_.guardian, 0);
  }

  ~StubbornRun() {
    for (const pid_t pid : {pids_.supervisor, pids_.guardian, pids_.child, pids_.grandchild}) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
  }
  StubbornRun(const StubbornRun&) = delete;
  StubbornRun& operator=(const StubbornRun&) = delete;

  const Stint& stint() const { return stint_; }
  Child& run() { return run_; }
  const Pids& pids() const { return pids_; }
  bool work_alive() const { return alive(pids_.child) || alive(pids_.grandchild); }

  // Waits for the lease as any other would, and looks at the work in that very moment.
  void expect_work_dead_when_granted() {
    const std::string look = cat("for p in ", pids_.child, " ", pids_.grandchild,
                                 "; do s=$(sed 's/.*) //; s/ .*//' /proc/$p/stat 2>/dev/null); "
                                 "case $s in ''|Z|X) ;; *) echo alive $p $s;; esac; done");
    const Finished next = stint_(
        {"run", "r", "--on-held", "wait=20s", "-q", "--", "sh", "-c", look}, milliseconds(30'000));
    EXPECT_EQ(next.exit_code, 0) << next.err;
    EXPECT_EQ(next.out, "");
    EXPECT_EQ(stint_.lease("r", "token"), "2");
  }

 private:
  std::string child_file() const { return stint_.dir().file("child"); }
  std::string grandchild_file() const { return stint_.dir().file("grandchild"); }
  Stint stint_;
  Child run_;
  Pids pids_;
};

// EVIDENCE-OF: G6 G7
TEST(WholeTreeFrozenPastItsTtl, IsDeadWithinASecondOfWakingAndExits75) {
  StubbornRun run;
  const Pids& p = run.pids();
  const std::vector<pid_t> all = {p.grandchild, p.child, p.guardian, p.supervisor};
  for (const pid_t pid : all) ::kill(pid, SIGSTOP);
  const Finished next = run.stint()({"run", "r", "--on-held", "wait=20s", "-q", "--", "true"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(run.stint().lease("r", "token"), "2");
  for (const pid_t pid : all) ::kill(pid, SIGCONT);
  const MonoTime woken = now();
  EXPECT_TRUE(wait_until([&] { return !run.work_alive(); }, milliseconds(5000)));
  EXPECT_LT(now() - woken, std::chrono::seconds(1));
  const auto exit = run.run().wait(milliseconds(5000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << run.run().err();
}

TEST(SupervisorFrozen, TheGuardianEndsTheTreeInTimeAndWakesTheSupervisorToSaySo) {
  StubbornRun run;
  ::kill(run.pids().supervisor, SIGSTOP);
  run.expect_work_dead_when_granted();
  // Nobody else wakes it.
  const auto exit = run.run().wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << run.run().err();
  EXPECT_NE(run.stint()({"events", "--json"}).out.find("run_stopped"), std::string::npos);
}

TEST(GuardianFrozen, TheSupervisorActsAlone) {
  StubbornRun run;
  ::kill(run.pids().guardian, SIGSTOP);
  ASSERT_EQ(run.stint()({"revoke", "r", "--token", "1", "--why", "test"}).exit_code, 0);
  EXPECT_TRUE(wait_until([&] { return !run.work_alive(); }));
  const auto exit = run.run().wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << run.run().err();
}

// EVIDENCE-OF: G6 G7
TEST(GuardianFrozen, TheSupervisorActsAloneAtTheDeadlineToo) {
  StubbornRun run;
  ::kill(run.pids().guardian, SIGSTOP);
  ASSERT_EQ(::rename(run.stint().database().c_str(), run.stint().dir().file("away.db").c_str()), 0);
  const auto exit = run.run().wait(milliseconds(20'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << run.run().err();
  EXPECT_FALSE(run.work_alive());
}

TEST(GuardianKilled, TheTreeIsEndedBeforeTheLeaseIsFree) {
  StubbornRun run;
  ::kill(run.pids().guardian, SIGKILL);
  run.expect_work_dead_when_granted();
  const auto exit = run.run().wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1) << run.run().err();
}

TEST(ChildFrozen, TheLeaseIsKeptAndNobodyElseGetsIt) {
  StubbornRun run;
  ::kill(run.pids().child, SIGSTOP);
  const Finished other =
      run.stint()({"run", "r", "--on-held", "wait=3s", "--held-exit", "42", "--", "true"});
  EXPECT_EQ(other.exit_code, 42) << other.err;
  EXPECT_TRUE(run.stint().held("r"));
}

TEST(ChildKilled, WhatItLeftBehindIsEndedBeforeTheLeaseIsFree) {
  StubbornRun run;
  ::kill(run.pids().child, SIGKILL);
  run.expect_work_dead_when_granted();
  const auto exit = run.run().wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 128 + SIGKILL) << run.run().err();
}

int deadline_files(const StubbornRun& run) {
  int out = 0;
  for (const auto& one : std::filesystem::recursive_directory_iterator(run.stint().dir().path())) {
    if (one.path().extension() == ".deadline") ++out;
  }
  return out;
}

// EVIDENCE-OF: G7
TEST(SupervisorKilled, NoDescendantIsAliveAfterASecondAndTheLeaseRunsOutNotBefore) {
  StubbornRun run;
  EXPECT_EQ(deadline_files(run), 1);
  const MonoTime killed = now();
  ::kill(run.pids().supervisor, SIGKILL);
  EXPECT_TRUE(wait_until([&] { return !run.work_alive() && !alive(run.pids().guardian); }));
  EXPECT_LT(now() - killed, std::chrono::seconds(1));
  EXPECT_TRUE(run.stint().held("r"));
  EXPECT_EQ(deadline_files(run), 0) << "the guardian takes the run's own files away";
  run.expect_work_dead_when_granted();
  // It was renewed at most a heartbeat before the blow.
  EXPECT_GT(now() - killed, kTtl / 2);
}

TEST(StoreGone, TheWorkIsStoppedAtTheDeadline) {
  StubbornRun run;
  const std::string away = run.stint().dir().file("away.db");
  ASSERT_EQ(::rename(run.stint().database().c_str(), away.c_str()), 0);
  const auto exit = run.run().wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << run.run().err();
  EXPECT_FALSE(run.work_alive());
}

// What is "left over" beside the store is its newest part.
// EVIDENCE-OF: G2 G12
TEST(LogOfTheStoreGone, TheWorkIsStoppedBeforeAnotherCanWork) {
  StubbornRun run;
  for (const char* end : {"-wal", "-shm"}) ::unlink((run.stint().database() + end).c_str());
  const std::string look = cat("kill -0 ", run.pids().child, " 2>/dev/null && echo both; true");
  const Finished other = run.stint()(
      {"run", "r", "--on-held", "wait=6s", "-q", "--", "sh", "-c", look}, milliseconds(30'000));
  EXPECT_EQ(other.out, "") << other.err;
  const auto exit = run.run().wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << run.run().err();
}

// EVIDENCE-OF: G8
TEST(Revoked, IsNoticedAtOnceAndOnRecord) {
  StubbornRun run;
  const MonoTime ordered = now();
  const Finished order =
      run.stint()({"revoke", "r", "--token", "1", "--why", "runs amok", "--by", "op"});
  ASSERT_EQ(order.exit_code, 0) << order.err;
  const auto exit = run.run().wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75);
  // The grace after a loss, not the next heartbeat (two thirds of a second later at the earliest).
  EXPECT_LT(now() - ordered, std::chrono::milliseconds(1500));
  const std::string history = run.stint()({"history", "r", "--json"}).out;
  EXPECT_NE(history.find(R"("reason":"revoked","by":"op","why":"runs amok")"), std::string::npos)
      << history;
}

// EVIDENCE-OF: G8
TEST(Revoked, IsToldAlsoOfWorkThatEndedByItselfAtThatMoment) {
  const Stint stint;
  const std::string order = cat(stint.binary(), " -q revoke r --why x --token $STINT_TOKEN");
  const Finished done =
      stint({"run", "r", "--on-lost", cat("echo $STINT_LOST_CAUSE >", stint.dir().file("told")),
             "--", "sh", "-c", cat(order, "; exit 0")});
  EXPECT_EQ(done.exit_code, 75) << done.err;
  EXPECT_NE(done.err.find("revoked"), std::string::npos) << done.err;
  EXPECT_EQ(read_text(stint.dir().file("told")), "revoked\n");
}

TEST(Transferred, TheOtherTakesUpThatVeryToken) {
  StubbornRun run;
  ASSERT_EQ(
      run.stint()({"transfer", "r", "--to", "bob", "--token", "1", "--why", "moving"}).exit_code,
      0);
  const auto exit = run.run().wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75);
  EXPECT_EQ(run.stint()({"run", "r", "--on-held", "fail", "--", "true"}).exit_code, 11);
  const Finished bob =
      run.stint()({"run", "r", "--owner", "bob", "--", "sh", "-c", "echo $STINT_TOKEN"});
  EXPECT_EQ(bob.out, "2\n") << bob.err;
  EXPECT_EQ(run.stint().lease("r", "reason"), "taken_up");
}

TEST(Progress, AWedgedRunIsEndedAndTheSuccessorGetsTheMarker) {
  const Stint stint;
  const std::string s = stint.binary();
  const Finished wedged = stint({"run", "r", "--progress-timeout", "500ms", "--", "sh", "-c",
                                 cat(s, " progress 'page 40' && exec sleep 60")});
  EXPECT_EQ(wedged.exit_code, 75) << wedged.err;
  const Finished next = stint({"run", "r", "--", "sh", "-c", "echo $STINT_PREVIOUS_PROGRESS"});
  EXPECT_EQ(next.out, "page 40\n");
  EXPECT_EQ(stint.lease("r", "reason"), "stalled");
}

TEST(Progress, OutputCountsWhereAsked) {
  const Stint stint;
  const Finished talking =
      stint({"run", "r", "--progress-timeout", "1s", "--progress-on", "output", "--", "sh", "-c",
             "for i in 1 2 3 4; do echo $i; sleep 0.4; done; echo done >&2"});
  EXPECT_EQ(talking.exit_code, 0) << talking.err;
  EXPECT_EQ(talking.out, "1\n2\n3\n4\n");
  EXPECT_NE(talking.err.find("done"), std::string::npos);
}

TEST(OnLost, TellsSomebody) {
  const Stint stint;
  const std::string told = stint.dir().file("told");
  Child run(
      stint.command({"run", "r", "--on-lost", cat("echo $STINT_RESOURCE $STINT_LOST_CAUSE >", told),
                     "--", "sleep", "60"}));
  ASSERT_TRUE(wait_until([&] { return stint.held("r"); }));
  ASSERT_EQ(stint({"revoke", "r", "--token", "1", "--why", "test"}).exit_code, 0);
  ASSERT_TRUE(run.wait(milliseconds(10'000)));
  EXPECT_EQ(read_text(told), "r revoked\n");
}

TEST(Lost, OfSeveralNamesTheOneThatWasLostWithItsOwnToken) {
  const Stint stint;
  ASSERT_EQ(stint({"run", "b", "--", "true"}).exit_code, 0);  // b is one token ahead of a
  Child run(stint.command({"run", "a", "b", "--", "sleep", "60"}));
  ASSERT_TRUE(wait_until([&] { return stint.held("b"); }));
  const std::string token = json_field(stint({"show", "b", "--json"}).out, "token");
  ASSERT_NE(token, json_field(stint({"show", "a", "--json"}).out, "token"));
  ASSERT_EQ(stint({"revoke", "b", "--token", token, "--why", "test"}).exit_code, 0);
  const auto exit = run.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75);
  EXPECT_NE(run.err().find(cat("'b' with token ", token, " was revoked")), std::string::npos)
      << run.err();
  EXPECT_FALSE(stint.held("a")) << "the other one is given back";
  std::string told;
  const std::string events = stint({"events", "--json"}).out;
  for (const std::string_view line : split(events, '\n')) {
    if (line.find("run_stopped") != std::string_view::npos) told = line;
  }
  EXPECT_EQ(json_field(told, "resource"), "b") << told;
  EXPECT_EQ(json_field(told, "token"), token) << told;
}

TEST(Restart, AcquiresAnewWithANewTokenAndANewChild) {
  const Stint stint;
  const std::string log = stint.dir().file("log");
  Child run(stint.command(
      {"run", "r", "--restart", "--ttl", "1s", "--", "sh", "-c",
       cat("echo $STINT_TOKEN >>", log, "; [ $STINT_TOKEN -gt 1 ] || exec sleep 60")}));
  ASSERT_TRUE(wait_until([&] { return read_text(log) == "1\n"; }));
  ASSERT_EQ(stint({"revoke", "r", "--token", "1", "--why", "test"}).exit_code, 0);
  const auto exit = run.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << run.err();
  EXPECT_EQ(read_text(log), "1\n3\n");
  EXPECT_NE(run.err().find("the work was stopped: "), std::string::npos) << run.err();
  EXPECT_NE(run.err().find("revoked"), std::string::npos) << "it says why: " << run.err();
  EXPECT_NE(run.err().find("; acquiring anew\n"), std::string::npos) << run.err();
}

TEST(Signals, ArePassedOnAndTheLeaseIsReleased) {
  const Stint stint;
  const std::string ready = stint.dir().file("ready");
  Child run(
      stint.command({"run", "r", "--", "sh", "-c",
                     cat("trap 'exit 9' TERM; echo >", ready, "; while :; do sleep 0.05; done")}));
  ASSERT_TRUE(wait_until([&] { return !read_text(ready).empty(); }));
  run.signal(SIGTERM);
  const auto exit = run.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 9);
  EXPECT_FALSE(stint.held("r"));
}

TEST(Signals, AreNotLostWhileTheChildStarts) {
  const Stint stint;
  for (int i = 0; i < 10; ++i) {
    Child run(stint.command({"run", "r", "--on-held", "wait", "--", "sleep", "60"}));
    ASSERT_TRUE(wait_until([&] { return stint.held("r"); }));
    run.signal(SIGTERM);
    const auto exit = run.wait(milliseconds(10'000));
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 128 + SIGTERM);
  }
}

TEST(Signals, TheSecondOneKills) {
  StubbornRun run;
  run.run().signal(SIGTERM);
  EXPECT_TRUE(run.run().running());
  run.run().signal(SIGINT);  // another one: two of a kind may arrive as one
  ASSERT_TRUE(run.run().wait(milliseconds(10'000)));
  EXPECT_FALSE(run.work_alive());
  EXPECT_FALSE(run.stint().held("r"));
}

TEST(Signals, EndAWaitingRun) {
  const Stint stint;
  Child holder(stint.command({"run", "r", "--", "sleep", "60"}));
  ASSERT_TRUE(wait_until([&] { return stint.held("r"); }));
  Child waiting(stint.command({"run", "r", "--on-held", "wait", "--", "true"}));
  ASSERT_TRUE(wait_until([&] { return waiting.err().find("waiting") != std::string::npos; }));
  waiting.signal(SIGINT);
  const auto exit = waiting.wait(milliseconds(5000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 128 + SIGINT);
}

}  // namespace
}  // namespace stint::test
