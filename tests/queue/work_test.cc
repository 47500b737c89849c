// stint work: real workers, frozen, killed, cancelled and wedged.
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

class Work : public ::testing::Test {
 protected:
  static constexpr Millis kPatience{60'000};

  std::string put(const std::string& payload, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"queue", "put", "jobs", payload, "--create"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = stint_(words);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return std::string(trim(done.out));
  }
  std::string item(const std::string& id, const std::string& field) {
    return json_field(stint_({"queue", "show", id, "--json"}).out, field);
  }
  bool becomes(const std::string& id, const std::string& state) {
    return wait_until([&] { return item(id, "state") == state; }, kPatience);
  }
  // A worker for `script`, in the background.
  std::unique_ptr<Child> start(const std::string& script, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"work", "jobs"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return std::make_unique<Child>(stint_.command(words));
  }
  Finished work(const std::string& script, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"work", "jobs", "--until-empty"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "sh", "-c", script});
    return stint_(words, kPatience);
  }
  static std::optional<int> code(Child& child) {
    return child.wait(kPatience).value_or(Exit{}).code;
  }
  std::string log() const { return read_text(log_); }
  bool logged(const std::string& text) const {
    return wait_until([&] { return log().find(text) != std::string::npos; }, kPatience);
  }

  Stint stint_;
  std::string log_ = stint_.dir().file("log");
  std::string stint_program_ = stint_.binary();
};

TEST_F(Work, AnIdleWorkerMakesNoSystemCall) {
  const std::string id = put("x");
  const auto worker = start("exit 0");
  ASSERT_TRUE(becomes(id, "done")) << worker->err();
  ASSERT_TRUE(wait_until([&] { return state_of(worker->pid()) == 'S'; }));
  const Quiet quiet = makes_no_call(worker->pid(), stint_.dir().file("trace"));
  if (!quiet.untraceable.empty()) GTEST_SKIP() << quiet.untraceable;
  EXPECT_TRUE(quiet.kept) << quiet.trace;
  // It is awake for the next one.
  EXPECT_TRUE(becomes(put("y"), "done"));
  worker->signal(SIGTERM);
  EXPECT_EQ(code(*worker), 0) << worker->err();
}

TEST_F(Work, GivesTheItemToTheCommandAndCompletesIt) {
  const std::string id = put("the payload");
  const Finished done =
      work(cat("cat; echo; cat $STINT_PAYLOAD_FILE; echo; echo $STINT_ITEM $STINT_EPOCH "
               "$STINT_ATTEMPT $STINT_QUEUE"));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, cat("the payload\nthe payload\n", id, " 1 1 jobs\n"));
  EXPECT_EQ(item(id, "state"), "done");
}

TEST_F(Work, FailsOnAnyOtherCodeAndPutsOffOnSeventyFive) {
  const std::string bad = put("x", {"--max-attempts", "1"});
  EXPECT_EQ(work("exit 3").exit_code, 0);
  EXPECT_EQ(item(bad, "state"), "failed");
  EXPECT_EQ(item(bad, "why"), "exit code 3");
  const std::string later = put("x", {"--max-attempts", "1"});
  EXPECT_EQ(work("exit 75").exit_code, 0);
  EXPECT_EQ(item(later, "state"), "waiting");
  EXPECT_EQ(item(later, "attempt"), "0");
}

// As its help says: of each worker.
TEST_F(Work, MostCountsTheItemsOfEachWorker) {
  for (int i = 0; i < 5; ++i) put(cat(i));
  const auto done = [&] { return stint_.events({"item_completed"}); };
  EXPECT_EQ(work("exit 0", {"--most", "1"}).exit_code, 0);
  EXPECT_EQ(done(), 1);
  EXPECT_EQ(code(*start("exit 0", {"--jobs", "2", "--most", "1"})), 0);
  EXPECT_EQ(done(), 3);
  EXPECT_NE(stint_({"work", "--help"}).out.find("with --jobs each worker"), std::string::npos);
}

TEST_F(Work, ACommandMaySpeakForItself) {
  const std::string id = put("x");
  const Finished done = work(cat("printf result >", log_, "; ", stint_program_,
                                 " queue complete --result ", log_, " --then jobs:next"),
                             {"--most", "1"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(item(id, "result"), "result");
  EXPECT_EQ(work("cat").out, "next");
}

// It is not stopped for that, and its worker does not come with a second, stale word.
TEST_F(Work, ACommandThatHasCompletedItsItemGoesOnToItsEnd) {
  const std::string id = put("x");
  const Finished done = work(cat(stint_program_, " queue complete --then jobs:next; ",
                                 "sleep 1.5; echo after >", log_, "; exit 3"),
                             {"--most", "1", "--ttl", "2s"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(log(), "after\n") << "it was stopped: " << done.err;
  EXPECT_EQ(item(id, "state"), "done");
  EXPECT_EQ(done.err.find("lost"), std::string::npos) << done.err;
  EXPECT_EQ(stint_({"events"}).out.find("item_refused_stale"), std::string::npos);
}

TEST_F(Work, ACommandThatCannotBeExecutedGivesTheItemBack) {
  const std::string id = put("x");
  const Finished done = stint_({"work", "jobs", "--until-empty", "--", "/no/such/program"});
  EXPECT_EQ(done.exit_code, 127) << done.err;
  EXPECT_EQ(item(id, "state"), "waiting");
  EXPECT_EQ(item(id, "attempt"), "0");
}

TEST_F(Work, StartsWhatIsPutWhileItWaitsAndEndsOnSigtermAfterTheItemAtHand) {
  put("first");
  const auto worker = start(cat("echo begin $(cat) >>", log_, "; while [ ! -e ", log_,
                                ".go ]; do sleep 0.02; "
                                "done; echo end >>",
                                log_));
  ASSERT_TRUE(logged("begin first"));
  put("second");
  worker->signal(SIGTERM);
  write_text(log_ + ".go", "");
  EXPECT_EQ(code(*worker), 0);
  EXPECT_EQ(log(), "begin first\nend\n");  // finished, and not one more
}

// The janitor inside another worker; the default: what was started is for a person.
// EVIDENCE-OF: G8
TEST_F(Work, AKilledWorkersItemIsParkedUnlessItReportsProgressAndReportedNone) {
  const std::string id = put("x", {"--claim-ttl", "2s"});
  auto worker = start(cat("echo $STINT_ITEM >>", log_, "; sleep 600"));
  ASSERT_TRUE(logged(id));
  worker->signal(SIGKILL);
  const auto janitor = start("true");
  EXPECT_TRUE(becomes(id, "parked"));
  EXPECT_NE(item(id, "why").find("begun"), std::string::npos);

  const std::string other = put("y", {"--claim-ttl", "2s", "--priority", "5"});
  EXPECT_TRUE(becomes(other, "done"));
  janitor->signal(SIGTERM);
  EXPECT_EQ(code(*janitor), 0);

  const std::string again = put("z", {"--claim-ttl", "2s"});
  worker = start(cat("echo $STINT_ITEM >>", log_, "; sleep 600"), {"--reports-progress"});
  ASSERT_TRUE(logged(again));
  worker->signal(SIGKILL);
  const auto next = start("true", {"--reports-progress"});
  EXPECT_TRUE(becomes(again, "done"));
  EXPECT_EQ(item(again, "epoch"), "2");
}

// A cancelled claim's worker is stopped at once, long before its claim would run out.
TEST_F(Work, CancelStopsTheWorker) {
  const std::string id = put("x", {"--claim-ttl", "1h"});
  const auto worker =
      start(cat("trap 'echo stopped >>", log_, "; exit 1' TERM; echo $STINT_ITEM >>", log_,
                "; while :; do sleep 0.05; done"),
            {"--most", "1"});
  ASSERT_TRUE(logged(id));
  EXPECT_EQ(stint_({"queue", "cancel", id, "--why", "wrong", "--epoch", "1"}).exit_code, 0);
  EXPECT_TRUE(logged("stopped"));
  EXPECT_EQ(code(*worker), 0);
  EXPECT_EQ(item(id, "state"), "cancelled");
}

// Frozen past its claim; the successor has it; the first wakes up.
// EVIDENCE-OF: G8 G10
TEST_F(Work, AFrozenWorkersEndCountsForNothingOnceAnotherHasClaimed) {
  const std::string id = put("x", {"--claim-ttl", "2s", "--requeue", "always"});
  const auto zombie =
      start(cat("echo zombie $STINT_EPOCH >>", log_, "; sleep 600"), {"--most", "1"});
  ASSERT_TRUE(logged("zombie 1"));
  zombie->signal(SIGSTOP);
  const auto heir = start(cat("echo heir $STINT_EPOCH >>", log_), {"--most", "1"});
  EXPECT_TRUE(becomes(id, "done"));
  EXPECT_TRUE(logged("heir 2"));
  zombie->signal(SIGCONT);
  zombie->wait(kPatience);
  EXPECT_EQ(item(id, "epoch"), "2");
  EXPECT_EQ(item(id, "state"), "done");
}

// A worker runs for months: what it was refused is on record when it goes on to the next item.
// EVIDENCE-OF: G8
TEST_F(Work, ARefusedWordIsInTheLedgerWhileItsWorkerGoesOn) {
  put("x");
  const std::string over = stint_.dir().file("over");
  const auto worker = start(cat("test $STINT_EPOCH = 1 && exec ", stint_program_,
                                " queue requeue $STINT_ITEM --epoch 1 --why again; echo second >>",
                                log_, "; until test -e ", over, "; do sleep 0.05; done"));
  ASSERT_TRUE(logged("second")) << worker->err();
  EXPECT_EQ(stint_.events({"item_refused_stale"}), 1) << worker->err();
  worker->signal(SIGTERM);
  write_text(over, "");
  EXPECT_EQ(code(*worker), 0) << worker->err();
}

// Heartbeats go on, nothing moves: the claim ends at the item's progress_timeout.
TEST_F(Work, AWedgedWorkerLosesItsClaimAndTheSuccessorGetsTheCheckpoint) {
  const std::string id =
      put("x", {"--claim-ttl", "2s", "--progress-timeout", "3s", "--requeue", "always"});
  const std::string state = stint_.dir().file("state.txt");
  write_text(state, "page 40");
  const auto wedged = start(cat(stint_program_, " queue checkpoint $STINT_ITEM p40 --data ", state,
                                "; echo wedged >>", log_, "; sleep 600"),
                            {"--reports-progress", "--most", "1"});
  ASSERT_TRUE(logged("wedged"));
  const auto heir =
      start(cat("echo got $(cat $STINT_CHECKPOINT_FILE) $STINT_PREVIOUS_PROGRESS >>", log_),
            {"--reports-progress", "--most", "1"});
  EXPECT_TRUE(logged("got page 40 p40"));
  EXPECT_TRUE(becomes(id, "done"));
  EXPECT_EQ(code(*wedged), 0);  // its work was stopped, it went on
  EXPECT_GT(stint_.events({"item_requeued", "stalled"}), 0);
}

// Long before the next third of the claim's ttl.
TEST_F(Work, AWedgedWorkersTreeDoesNotGoOnBesideItsSuccessor) {
  put("x", {"--progress-timeout", "1s", "--requeue", "always"});
  const std::string script =
      cat(stint_program_, " queue checkpoint $STINT_ITEM m; echo begun $STINT_EPOCH >>", log_,
          "; exec sleep 1000");
  const auto wedged = start(script, {"--most", "1"});
  ASSERT_TRUE(logged("begun 1"));
  const auto next = start(script, {"--most", "1"});
  ASSERT_TRUE(logged("begun 2"));
  EXPECT_TRUE(wedged->wait(Millis(20'000)).has_value()) << wedged->err();
  EXPECT_TRUE(next->wait(Millis(20'000)).has_value()) << next->err();
}

// It waits for its lease several times as long as it may go without progress: it has not begun.
TEST_F(Work, WaitingForItsLeaseIsNoWantOfProgress) {
  const std::string id = put("x", {"--progress-timeout", "1s", "--max-attempts", "2"});
  ASSERT_EQ(stint_({"acquire", "repo", "--ttl", "60s"}).exit_code, 0);
  const auto waits = start(cat("echo ran $STINT_EPOCH >>", log_),
                           {"--with", "repo", "--ttl", "6s", "--most", "1"});
  ASSERT_TRUE(becomes(id, "claimed"));
  // A janitor looks all the while, until it has taken away what a hand claimed with three times
  // the limit and never touched.
  const std::string plain = put("y", {"--progress-timeout", "3s"});
  ASSERT_EQ(stint_({"queue", "claim", "jobs", "--owner", "hand"}).exit_code, 0);
  ASSERT_TRUE(wait_until(
      [&] {
        stint_({"queue", "claim", "jobs", "--owner", "janitor", "--ttl", "60s"});
        return item(plain, "owner") == "janitor";
      },
      kPatience));
  EXPECT_EQ(item(id, "state"), "claimed");
  EXPECT_EQ(item(id, "epoch"), "1");
  EXPECT_EQ(item(id, "attempt"), "1");
  ASSERT_EQ(stint_({"revoke", "repo", "--token", "1", "--why", "test"}).exit_code, 0);
  EXPECT_EQ(code(*waits), 0) << waits->err();
  EXPECT_EQ(item(id, "state"), "done") << item(id, "why");
  EXPECT_EQ(log(), "ran 1\n");
}

TEST_F(Work, WithALeaseEachItemHasATokenAndTwoNeverRunAtOnce) {
  for (int i = 0; i < 4; ++i) put(cat(i));
  const std::string script =
      cat("echo start $STINT_RESOURCE $STINT_TOKEN >>", log_, "; sleep 0.1; echo end >>", log_);
  const Finished done = work(script, {"--with", "repo", "--jobs", "2"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const std::string text = log();
  for (int i = 1; i <= 4; ++i) {
    EXPECT_NE(text.find(cat("start repo ", i, "\nend\n")), std::string::npos) << text;
  }
}

// A worker of an ordinary user, and work that made itself another's: it cannot be killed.
// EVIDENCE-OF: G7
TEST_F(Work, TheLeaseBesideAnItemIsKeptWhileItsWorkMayStillWrite) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a program that changes its user";
  // The lease lasts as long as the queue's own claims: far beyond the end of this one.
  const std::string first = put("first");
  ASSERT_EQ(stint_({"queue", "cancel", first, "--why", "only to make the queue"}).exit_code, 0);
  const std::string id = put("x", {"--claim-ttl", "3s"});
  const std::string folder = stint_.dir().path();
  const std::string other = stint_.dir().file("as-another");
  const std::string pid_file = stint_.dir().file("pid");
  ASSERT_EQ(run({.argv = {"cp", "/usr/bin/setpriv", other}}).exit_code, 0);
  ASSERT_EQ(run({.argv = {"chown", "-R", "65534:65534", folder}}).exit_code, 0);
  ASSERT_EQ(run({.argv = {"chown", "0:0", other}}).exit_code, 0);
  ASSERT_EQ(run({.argv = {"chmod", "4755", other}}).exit_code, 0);
  Command command =
      stint_.command({"work", "jobs", "--with", "repo", "--most", "1", "--", other, "--reuid", "0",
                      "--", "sh", "-c", cat("echo $$ >", pid_file, "; exec sleep 1000")});
  const std::vector<std::string> as_nobody = {"setpriv", "--reuid",        "65534", "--regid",
                                              "65534",   "--clear-groups", "--"};
  command.argv.insert(command.argv.begin(), as_nobody.begin(), as_nobody.end());
  Child worker(command);
  std::optional<std::uint64_t> pid;
  ASSERT_TRUE(wait_until(
      [&] { return (pid = parse_digits(trim(read_text(pid_file)))).has_value(); }, kPatience))
      << worker.err();
  EXPECT_EQ(stint_({"queue", "cancel", id, "--epoch", "1", "--why", "not wanted"}).exit_code, 0);
  EXPECT_TRUE(worker.wait(kPatience).has_value()) << worker.err();
  EXPECT_NE(worker.err().find("could not be stopped"), std::string::npos) << worker.err();
  EXPECT_EQ(json_field(stint_({"show", "repo", "--json"}).out, "state"), "held");
  EXPECT_EQ(stint_.events({"released", "repo"}), 0);
  EXPECT_EQ(stint_.events({"granted", "repo"}), 1);
  ::kill(static_cast<pid_t>(*pid), SIGKILL);
}

TEST_F(Work, ManyJobsDoEachItemOnce) {
  for (int i = 0; i < 12; ++i) put(cat("item-", i));
  const Finished done = work(cat("echo $(cat) >>", log_), {"--jobs", "3"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const std::string text = log();
  EXPECT_EQ(count_lines(text), 12);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(count_lines(text, cat("item-", i)), i == 1 ? 3 : 1);
}

TEST_F(Work, AWorkerOfManyThatDiesIsToldOfAndShowsInTheEnd) {
  put("x");
  const auto crew = start(cat("echo begun >>", log_), {"--jobs", "2"});
  ASSERT_TRUE(logged("begun"));
  ASSERT_TRUE(wait_until([&] { return descendants(crew->pid()).size() >= 2; }, kPatience));
  ASSERT_EQ(::kill(descendants(crew->pid()).front(), SIGKILL), 0);
  EXPECT_TRUE(wait_until(
      [&] {
        return crew->err().find("was killed by signal 9; nobody takes its place: 1 is left") !=
               std::string::npos;
      },
      kPatience))
      << crew->err();
  crew->signal(SIGTERM);
  EXPECT_EQ(code(*crew), 137);
}

TEST_F(Work, AnUnknownQueueIsAnError) {
  EXPECT_EQ(stint_({"work", "nowhere", "--", "true"}).exit_code, 2);
}

}  // namespace
}  // namespace stint::test
