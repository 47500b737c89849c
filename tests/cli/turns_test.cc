// Agents take turns: many runs at once, waiting, skipping, nesting.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;

// A job that notes its start and end; two at once would show as start, start.
std::string noting_job(const Stint& stint, const std::string& between = "") {
  const std::string log = stint.dir().file("log");
  return cat("echo start $STINT_TOKEN >>", log, "; ", between, " echo end $STINT_TOKEN >>", log);
}

void expect_turns(const std::string& log, std::size_t jobs) {
  const auto lines = split(trim(log), '\n');
  ASSERT_EQ(lines.size(), jobs * 2) << log;
  for (std::size_t i = 0; i < lines.size(); i += 2) {
    EXPECT_EQ(lines[i], cat("start ", i / 2 + 1));
    EXPECT_EQ(lines[i + 1], cat("end ", i / 2 + 1));
  }
}

std::vector<std::unique_ptr<Child>> start_many(const Stint& stint, int count,
                                               const std::vector<std::string>& words) {
  std::vector<std::unique_ptr<Child>> all;
  for (int i = 0; i < count; ++i) all.push_back(std::make_unique<Child>(stint.command(words)));
  return all;
}

// EVIDENCE-OF: G2
TEST(FortyRuns, SkippingNeverRunTwoJobsAtOnceAndEverySkipIsAnEvent) {
  const Stint stint;
  const auto all = start_many(stint, 40,
                              {"run", "r", "--store", stint.patient_store(), "--on-held", "skip",
                               "--", "sh", "-c", noting_job(stint, "sleep 0.2;")});
  for (const auto& child : all) {
    const auto exit = child->wait(milliseconds(60'000));
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 0) << child->err();
  }
  const int ran = count_lines(read_text(stint.dir().file("log")), "start");
  expect_turns(read_text(stint.dir().file("log")), static_cast<std::size_t>(ran));
  EXPECT_GE(ran, 1);
  EXPECT_EQ(stint.events({"\"skipped_held\""}), 40 - ran);
  EXPECT_EQ(stint.events({"\"granted\""}), ran);
  EXPECT_EQ(stint.lease("r", "token"), cat(ran));
}

// EVIDENCE-OF: G1 G2
TEST(FortyRuns, WaitingAllRunOneAfterAnotherWithTokensGrowingByOne) {
  const Stint stint;
  const auto all = start_many(stint, 40,
                              {"run", "r", "--store", stint.patient_store(), "--on-held", "wait",
                               "--", "sh", "-c", noting_job(stint)});
  for (const auto& child : all) {
    const auto exit = child->wait(milliseconds(60'000));
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 0) << child->err();
  }
  expect_turns(read_text(stint.dir().file("log")), 40);
  EXPECT_EQ(stint.events({"\"skipped_held\""}), 0);
}

TEST(TwoRuns, WithOneOwnerNameExcludeEachOther) {
  const Stint stint;
  Child first(stint.command({"run", "r", "--owner", "same", "--", "sleep", "30"}));
  ASSERT_TRUE(wait_until([&] { return stint.held("r"); }));
  const Finished second = stint({"run", "r", "--owner", "same", "--on-held", "fail", "--", "true"});
  EXPECT_EQ(second.exit_code, 11) << second.err;
  EXPECT_NE(second.err.find("held by 'same'"), std::string::npos) << second.err;
}

TEST(Skipped, ExitsZeroOrAsAsked) {
  const Stint stint;
  Child first(stint.command({"run", "r", "--", "sleep", "30"}));
  ASSERT_TRUE(wait_until([&] { return stint.held("r"); }));
  EXPECT_EQ(stint({"run", "r", "--", "false"}).exit_code, 0);
  EXPECT_EQ(stint({"run", "r", "--held-exit", "42", "--", "true"}).exit_code, 42);
  EXPECT_EQ(stint({"run", "r", "--on-held", "wait=200ms", "--", "true"}).exit_code, 0);
  EXPECT_EQ(
      stint({"run", "r", "--on-held", "retry=100ms", "--or", "other", "--", "true"}).exit_code, 0);
  EXPECT_EQ(stint.lease("other", "token"), "1");
}

TEST(SeveralResources, AreAllOrNothing) {
  const Stint stint;
  Child holder(stint.command({"run", "b", "--", "sleep", "30"}));
  ASSERT_TRUE(wait_until([&] { return stint.held("b"); }));
  EXPECT_EQ(stint({"run", "c", "b", "a", "--on-held", "fail", "--", "true"}).exit_code, 11);
  EXPECT_FALSE(stint.held("a"));
  EXPECT_FALSE(stint.held("c"));
  holder.signal(SIGTERM);
  EXPECT_TRUE(holder.wait(milliseconds(10'000)));
  const Finished all =
      stint({"run", "c", "b", "a", "--", "sh", "-c", "echo \"$STINT_HELD\"; echo $STINT_RESOURCE"});
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_EQ(count_lines(all.out), 4) << all.out;
  EXPECT_NE(all.out.find("\nc\n"), std::string::npos) << all.out;
}

TEST(NestedRun, ReusesWhatItsAncestorsHold) {
  const Stint stint;
  const std::string& s = stint.binary();
  const Finished nested = stint({"run", "A", "--", s, "run", "B", "--", s, "run", "A", "--", "sh",
                                 "-c", "echo $STINT_RESOURCE $STINT_TOKEN; echo \"$STINT_HELD\""});
  EXPECT_EQ(nested.exit_code, 0) << nested.err;
  EXPECT_EQ(split(nested.out, '\n').front(), "A 1");
  EXPECT_EQ(count_lines(nested.out), 3) << nested.out;
  EXPECT_EQ(stint.lease("A", "token"), "1");
  EXPECT_EQ(stint.lease("B", "token"), "1");
}

TEST(NestedRun, DoesNotReleaseWhatItReused) {
  const Stint stint;
  const Finished nested =
      stint({"run", "A", "--", "sh", "-c",
             cat(stint.binary(), " run A -- true; ", stint.binary(), " show A --json")});
  EXPECT_EQ(json_field(nested.out, "held"), "true") << nested.out;
}

// Nobody renews a lease that a script acquired: a run that re-uses it ends with it.
// EVIDENCE-OF: G7
TEST(NestedRun, UnderAnUnrenewedLeaseEndsBeforeThatRunsOut) {
  const Stint stint;
  const std::string json = stint({"acquire", "n", "--ttl", "1500ms", "--json"}).out;
  Command command = stint.command({"run", "n", "--", "sleep", "60"});
  command.env.emplace_back("STINT_HELD", cat("n ", json_field(json, "generation"), " 1"));
  command.env.emplace_back("STINT_HELD_CLAIMS", json_field(json, "claim"));
  Child nested(command);
  const Finished next = stint({"run", "n", "--on-held", "wait=20s", "-q", "--", "true"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(stint.lease("n", "token"), "2");
  EXPECT_EQ(descendants(nested.pid()).size(), 0U);
  const auto exit = nested.wait(milliseconds(5000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << nested.err();
}

TEST(NestedRun, WithAStaleAncestorIsAnErrorAndStartsNothing) {
  const Stint stint;
  ASSERT_EQ(stint({"run", "A", "--", "true"}).exit_code, 0);
  const std::string generation = stint.lease("A", "generation");
  Command command = stint.command({"run", "A", "--", "touch", stint.dir().file("started")});
  command.env.emplace_back("STINT_HELD", cat("A ", generation, " 1"));
  command.env.emplace_back("STINT_HELD_CLAIMS", "00000000000000000000000000000000");
  const Finished nested = run(command);
  EXPECT_EQ(nested.exit_code, 12) << nested.err;
  EXPECT_TRUE(read_text(stint.dir().file("started")).empty());
}

// The record came along in a backup, and was recovered: what it says was said in another life.
// EVIDENCE-OF: G12
TEST(NestedRun, UnderALeaseOfAnotherGenerationStartsNothing) {
  const Stint stint;
  const std::string json = stint({"acquire", "A", "--ttl", "1h", "--json"}).out;
  Command command = stint.command({"run", "A", "--", "touch", stint.dir().file("started")});
  command.env.emplace_back("STINT_HELD", "A 00000000000000000000000000000000 1");
  command.env.emplace_back("STINT_HELD_CLAIMS", json_field(json, "claim"));
  const Finished nested = run(command);
  EXPECT_EQ(nested.exit_code, 12) << nested.err;
  EXPECT_FALSE(std::filesystem::exists(stint.dir().file("started")));
}

TEST(NestedRun, OnAnotherStoreTakesALeaseOfItsOwn) {
  const Stint stint;
  const std::string other = cat("sqlite:", stint.dir().file("other.db"));
  const Finished nested = stint({"run", "A", "--", stint.binary(), "--store", other, "run", "A",
                                 "--", "sh", "-c", "echo $STINT_TOKEN"});
  EXPECT_EQ(nested.exit_code, 0) << nested.err;
  EXPECT_EQ(nested.out, "1\n");
}

// `acquire --env` inside a run adds to what is held, and hands its --store on.
TEST(NestedRun, AcquireEnvKeepsWhatTheAncestorsHold) {
  const Stint stint;
  const std::string script =
      cat("eval \"$(", stint.binary(), " acquire B --env)\"; ", stint.binary(), " check A && ",
          stint.binary(), " run A B -q -- echo both");
  const Finished nested = stint({"run", "A", "--", "sh", "-c", script});
  EXPECT_EQ(nested.exit_code, 0) << nested.err;
  EXPECT_EQ(nested.out, "both\n") << nested.err;
  const std::string other = cat("sqlite:", stint.dir().file("other.db"));
  const std::string there = cat("eval \"$(", stint.binary(), " acquire C --env --store ", other,
                                ")\"; ", stint.binary(), " check && ", stint.binary(), " release");
  Command command = stint.command({"version"});
  command.argv = {"sh", "-c", there};
  const Finished done = run(command);
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST(NestedRun, EndsWhenTheOuterIsLost) {
  const Stint stint;
  const std::string pid_file = stint.dir().file("pid");
  Child outer(stint.command({"run", "A", "--", stint.binary(), "run", "B", "--", "sh", "-c",
                             cat("echo $$ >", pid_file, "; exec sleep 60")}));
  ASSERT_TRUE(wait_until([&] { return parse_digits(trim(read_text(pid_file))).has_value(); }));
  const auto pid = static_cast<pid_t>(*parse_digits(trim(read_text(pid_file))));
  ASSERT_EQ(stint({"revoke", "A", "--token", "1", "--why", "test"}).exit_code, 0);
  const auto exit = outer.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << outer.err();
  EXPECT_FALSE(alive(pid));
}

TEST(Child, GetsTheContractsEnvironment) {
  const Stint stint;
  const Finished env = stint({"run", "site/a", "--owner", "me", "--ttl", "5s", "--", "env"});
  for (const char* line : {"STINT_RESOURCE=site/a\n", "STINT_OWNER=me\n", "STINT_TOKEN=1\n",
                           "STINT_PREVIOUS_PROGRESS=\n", "STINT_STORE=sqlite:/"}) {
    EXPECT_NE(env.out.find(line), std::string::npos) << line << env.out;
  }
  for (const char* name : {"STINT_CLAIM=", "STINT_GENERATION=", "STINT_DEADLINE_MS=",
                           "STINT_DEADLINE_FILE=/", "STINT_STORE_FILE=/", "STINT_HELD=site/a "}) {
    EXPECT_NE(env.out.find(name), std::string::npos) << name << env.out;
  }
  const Finished bare = stint({"run", "site/a", "--no-store-env", "--", "env"});
  EXPECT_EQ(bare.out.find("STINT_STORE"), std::string::npos) << bare.out;
}

TEST(Child, ItsExitCodeIsPassedOn) {
  const Stint stint;
  EXPECT_EQ(stint({"run", "r", "--", "sh", "-c", "exit 7"}).exit_code, 7);
  EXPECT_EQ(stint({"run", "r", "--", "sh", "-c", "kill -TERM $$"}).exit_code, 128 + SIGTERM);
  EXPECT_EQ(stint({"run", "r", "--", "/no/such/command"}).exit_code, 127);
  EXPECT_EQ(stint({"run", "r", "--", "/etc/passwd"}).exit_code, 126);
  EXPECT_FALSE(stint.held("r"));
}

}  // namespace
}  // namespace stint::test
