// How a child ended is told as it was, or as unknown, whatever our parent left us of SIGCHLD.
#include <gtest/gtest.h>
#include <signal.h>

#include "base/text.h"
#include "tests/cli/every_command.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

// Started by a parent that ignores SIGCHLD: so do we then, until we say otherwise.
Command ignored(Command command) {
  command.argv.insert(command.argv.begin(), {"env", "--ignore-signal=CHLD"});
  return command;
}

// The same with SIGCHLD blocked.
Command blocked(Command command) {
  command.argv.insert(command.argv.begin(), {"env", "--block-signal=CHLD"});
  return command;
}

struct Ending {
  const char* script;
  int code;
};
constexpr Ending kEndings[] = {{"exit 0", 0}, {"exit 3", 3}, {"kill -9 $$", 137}};

// EVIDENCE-OF: G7
TEST(IgnoredSigchld, ARunEndsAsItsChildDidAndInTime) {
  const Stint stint;
  for (const Ending& ending : kEndings) {
    for (const auto& command : {ignored, blocked}) {
      const Finished done =
          run(command(stint.command({"run", "r", "--", "sh", "-c", ending.script})));
      EXPECT_EQ(done.exit_code, ending.code) << ending.script << done.err;
      EXPECT_LT(done.took, Millis(5000)) << ending.script;
      EXPECT_FALSE(stint.held("r"));
    }
  }
}

TEST(IgnoredSigchld, ARunIsEndedBySigterm) {
  const Stint stint;
  Child child(ignored(stint.command({"run", "r", "--", "sh", "-c", "echo up; exec sleep 600"})));
  ASSERT_TRUE(wait_until([&] { return child.out() == "up\n"; }));
  child.signal(SIGTERM);
  const auto end = child.wait(Millis(8000));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 128 + SIGTERM);
}

// What the work starts itself has ends, too.
TEST(IgnoredSigchld, TheWorkFindsTheMaskOfTheStartAndSigchldAsUsual) {
  // Others than SIGCHLD are as whoever runs the tests has them.
  const auto has_sigchld = [](const std::string& status, const std::string& field) {
    const std::string number = status.substr(status.find(field) + field.size());
    return (std::stoull(number, nullptr, 16) & (1U << (SIGCHLD - 1U))) != 0;
  };
  const Stint stint;
  const Words words = {"run", "r", "--", "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"};
  const std::string where_ignored = run(ignored(stint.command(words))).out;
  const std::string where_blocked = run(blocked(stint.command(words))).out;
  for (const std::string& out : {where_ignored, where_blocked}) {
    ASSERT_NE(out.find("SigBlk:\t"), std::string::npos) << out;
    EXPECT_FALSE(has_sigchld(out, "SigIgn:\t")) << out;
  }
  EXPECT_FALSE(has_sigchld(where_ignored, "SigBlk:\t")) << where_ignored;
  EXPECT_TRUE(has_sigchld(where_blocked, "SigBlk:\t")) << where_blocked;
}

TEST(IgnoredSigchld, AnActHasTheResultOfItsCommand) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  for (const Ending& ending : kEndings) {
    const Words words = {"admit", "door",        "--resource", "r",  "--token", "1",
                         "--key", ending.script, "--",         "sh", "-c",      ending.script};
    EXPECT_EQ(run(ignored(stint.command(words))).exit_code, ending.code) << ending.script;
  }
}

TEST(IgnoredSigchld, OnlyWhatEndedWellIsDone) {
  const Stint stint;
  EXPECT_EQ(run(ignored(stint.command({"once", "k", "--", "sh", "-c", "exit 3"}))).exit_code, 3);
  EXPECT_EQ(run(ignored(stint.command({"once", "k", "--", "sh", "-c", "exit 0"}))).exit_code, 0);
  ASSERT_EQ(stint({"queue", "put", "q", "x", "--create"}).exit_code, 0);
  run(ignored(
      stint.command({"work", "q", "--most", "1", "--until-empty", "--", "sh", "-c", "exit 3"})));
  EXPECT_NE(stint({"queue", "ls", "q", "--json"}).out.find("exit code 3"), std::string::npos);
}

TEST(IgnoredSigchld, AWorkerThatEndedBadlyIsTold) {
  const Stint stint;
  ASSERT_EQ(stint({"queue", "put", "q", "x", "--create"}).exit_code, 0);
  const Finished done = run(ignored(stint.command(
      {"work", "q", "--jobs", "2", "--most", "1", "--until-empty", "--", "/no/such"})));
  EXPECT_EQ(done.exit_code, 127) << done.err;
}

TEST(IgnoredSigchld, TheErrandAfterALossIsNotToldAsFailed) {
  const Stint stint;
  const std::string lost = stint.dir().file("lost");
  Child child(ignored(stint.command(
      {"run", "r", "--on-lost", cat("echo $STINT_LOST_CAUSE >", lost), "--", "sleep", "600"})));
  ASSERT_TRUE(wait_until([&] { return stint.held("r"); }));
  ASSERT_EQ(stint({"revoke", "r", "--token", "1", "--why", "test"}).exit_code, 0);
  const auto end = child.wait(Millis(20'000));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 75);
  EXPECT_EQ(read_text(lost), "revoked\n");
  EXPECT_EQ(child.err().find("--on-lost command failed"), std::string::npos) << child.err();
}

TEST(IgnoredSigchld, NoCommandEndsOtherwise) {
  const Stint plain;
  const Stint under;
  for (const Stint* stint : {&plain, &under}) {
    prepare_folder(*stint);
    ASSERT_EQ((*stint)({"acquire", "keep", "--ttl", "1h"}).exit_code, 0);
  }
  for (const Words& words : kEveryCommand) {
    Command one = plain.command(words);
    one.cwd = plain.dir().path();
    Command other = ignored(under.command(words));
    other.cwd = under.dir().path();
    const Finished expected = run(one);
    const Finished done = run(other);
    EXPECT_EQ(done.exit_code, expected.exit_code) << words.front() << ": " << done.err;
    EXPECT_LT(done.took, Millis(8000)) << words.front();
  }
}

}  // namespace
}  // namespace stint::test
