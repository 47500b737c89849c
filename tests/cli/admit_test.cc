// stint admit: gate, intent, act, result.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

std::vector<std::string> admit(std::vector<std::string> options, std::vector<std::string> command) {
  std::vector<std::string> words = {"admit", "deploy", "--resource", "r"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

TEST(Admit, PassesOutputAndExitCodeOnAndTellsTheGap) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  const Finished done =
      stint(admit({"--token", "1", "--key", "k"}, {"sh", "-c", "cat; echo out; exit 3"}));
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_EQ(done.out, "out\n");
  EXPECT_NE(done.err.find("narrow, not zero"), std::string::npos) << done.err;
  const Finished shown = stint({"admit", "deploy", "--show", "k", "--json"});
  EXPECT_EQ(json_field(shown.out, "exit_code"), "3");
  EXPECT_EQ(json_field(shown.out, "result_token"), "1");
  // printf 'out\n' | sha256sum
  EXPECT_EQ(json_field(shown.out, "digest"),
            "sha256:54034ac5c6e9ea95734ec2b729fd6d62abf64af34a9f9ce5d466cb788191a73d")
      << shown.out;
  EXPECT_EQ(stint({"admit", "deploy", "--show", "none"}).exit_code, 3);
}

TEST(Admit, AFinishedKeyIsAnsweredWithItsResultAndNotRunAgain) {
  const Stint stint;
  const std::string mark = stint.dir().file("mark");
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  ASSERT_EQ(stint(admit({"--token", "1", "--key", "k"}, {"sh", "-c", "exit 5"})).exit_code, 5);
  const Finished again = stint(admit({"--token", "1", "--key", "k"}, {"touch", mark}));
  EXPECT_EQ(again.exit_code, 5);
  EXPECT_NE(again.err.find("not run again"), std::string::npos) << again.err;
  ASSERT_EQ(stint({"acquire", "r", "--retake"}).out, "2\n");
  EXPECT_EQ(stint(admit({"--token", "2", "--key", "k"}, {"touch", mark})).exit_code, 5);
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_EQ(stint(admit({"--token", "2", "--key", "k2"}, {"touch", mark})).exit_code, 0);
}

// EVIDENCE-OF: G5
// Neither the gap nor that nothing was run was in the JSON.
TEST(Admit, WithJsonTheGapAndARepeatAreAnObjectOnStandardError) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  const auto words =
      admit({"--token", "1", "--key", "k", "--json"}, {"sh", "-c", "echo out; exit 5"});
  const Finished first = stint(words);
  EXPECT_EQ(first.exit_code, 5);
  EXPECT_EQ(first.out, "out\n");
  EXPECT_TRUE(first.err.starts_with(
      R"({"admitted":{"name":"deploy","key":"k","token":1,"already":false,"gap_ms":)"))
      << first.err;
  const Finished again = stint(words);
  EXPECT_EQ(again.exit_code, 5);
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(again.err,
            "{\"admitted\":{\"name\":\"deploy\",\"key\":\"k\",\"token\":1,\"already\":true}}\n");
}

TEST(Admit, AStaleTokenRunsNothingAndAnOvertakenOneDoesNotCount) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  // While the first one runs, a second takes over and begins.
  const std::string overtake =
      cat(stint.binary(), " acquire r --retake && ", stint.binary(),
          " admit deploy --resource r --token 2 --key k -- sh -c 'exit 7'");
  const Finished first = stint(admit({"--token", "1", "--key", "k"}, {"sh", "-c", overtake}));
  EXPECT_EQ(first.exit_code, 13) << first.err;
  EXPECT_NE(first.err.find("does not count"), std::string::npos) << first.err;
  EXPECT_EQ(json_field(stint({"admit", "deploy", "--show", "k", "--json"}).out, "exit_code"), "7");
  const Finished stale = stint(admit({"--token", "1", "--key", "z"}, {"echo", "ran"}));
  EXPECT_EQ(stale.exit_code, 13);
  EXPECT_EQ(stale.out, "");
}

// EVIDENCE-OF: G5
TEST(Admit, ARevokedTokenRunsNothingThoughNothingSealed) {
  const Stint stint;
  const std::string mark = stint.dir().file("mark");
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  ASSERT_EQ(stint(admit({"--token", "1", "--key", "k"}, {"true"})).exit_code, 0);
  ASSERT_EQ(stint({"revoke", "r", "--token", "1", "--why", "w"}).exit_code, 0);
  const Finished refused = stint(admit({"--token", "1", "--key", "l"}, {"touch", mark}));
  EXPECT_EQ(refused.exit_code, 13) << refused.err;
  ASSERT_EQ(stint({"acquire", "r"}).out, "3\n");
  EXPECT_EQ(stint(admit({"--token", "1", "--key", "m"}, {"touch", mark})).exit_code, 13);
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_EQ(stint(admit({"--token", "3", "--key", "n"}, {"true"})).exit_code, 0);
}

TEST(Admit, OnceRunsOneKeyPerTokenAndSaysUnknownWhenTheResultIsMissing) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  const std::vector<std::string> once = {"--token", "1", "--mode", "once", "--key", "k"};
  ASSERT_EQ(stint(admit(once, {"true"})).exit_code, 0);
  EXPECT_EQ(stint(admit(once, {"true"})).exit_code, 0) << "the same again";
  EXPECT_EQ(stint(admit({"--token", "1", "--mode", "once", "--key", "x"}, {"true"})).exit_code, 13);
  ASSERT_EQ(stint({"acquire", "r", "--retake"}).out, "2\n");
  const std::vector<std::string> cut = {"--token", "2", "--mode", "once", "--key", "cut"};
  // It dies between its intent and its result.
  const std::vector<std::string> dies = {"sh", "-c", "kill -9 $PPID"};
  EXPECT_NE(stint(admit(cut, dies)).exit_code, 0);
  const Finished unknown = stint(admit(cut, dies));
  EXPECT_EQ(unknown.exit_code, 14) << unknown.err;
  EXPECT_NE(unknown.err.find("not known"), std::string::npos);
}

TEST(Admit, WhatRanAndCouldNotBeRecordedIsUnknown) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  const std::string mark = stint.dir().file("mark");
  const std::string take_away =
      cat("touch ", mark, "; mv ", stint.database(), " ", stint.database(), ".away");
  const Finished done = stint(admit({"--token", "1", "--key", "k"}, {"sh", "-c", take_away}));
  EXPECT_EQ(done.exit_code, 14) << done.err;
  EXPECT_TRUE(std::filesystem::exists(mark));
  EXPECT_NE(done.err.find("--show k"), std::string::npos) << done.err;
}

TEST(Admit, OnceWhatCouldNotBeExecutedIsKnownToHaveDoneNothing) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  const auto nowhere = admit({"--token", "1", "--key", "k", "--mode", "once"}, {"/no/such"});
  EXPECT_EQ(stint(nowhere).exit_code, 127);
  EXPECT_EQ(stint(nowhere).exit_code, 127) << "not 14";
  const auto plain = admit({"--token", "1", "--key", "k2"}, {"/no/such"});
  EXPECT_EQ(stint(plain).exit_code, 127);
  EXPECT_EQ(stint(admit({"--token", "1", "--key", "k2"}, {"true"})).exit_code, 0);
}

TEST(Admit, AnUnsafeModeRunsItAllTheSameAndSaysSo) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  ASSERT_EQ(stint({"acquire", "r", "--retake"}).out, "2\n");
  ASSERT_EQ(stint(admit({"--token", "2", "--key", "k"}, {"true"})).exit_code, 0);
  Command warn = stint.command(admit({"--token", "1", "--key", "w"}, {"echo", "ran"}));
  warn.env.emplace_back("STINT_GUARD", "warn");
  const Finished done = run(warn);
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.out, "ran\n");
  EXPECT_NE(done.err.find("UNSAFE"), std::string::npos) << done.err;
  EXPECT_EQ(stint.events({"write_would_be_refused", "admit:deploy"}), 1);
  EXPECT_EQ(stint({"admit", "deploy", "--show", "w"}).exit_code, 3) << "it left no result";
}

TEST(Admit, BadInputIsRefused) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  EXPECT_EQ(stint(admit({"--token", "1", "--key", "a\nb"}, {"true"})).exit_code, 2);
  EXPECT_EQ(stint(admit({"--token", "1", "--key", std::string(300, 'k')}, {"true"})).exit_code, 2);
  EXPECT_EQ(stint({"admit", "deploy"}).exit_code, 2) << "no command";
  EXPECT_EQ(stint(admit({"--token", "1"}, {"/nowhere/at/all"})).exit_code, 127);
  EXPECT_EQ(stint(admit({"--key", "n"}, {"true"})).exit_code, 13) << "no token";
}

}  // namespace
}  // namespace stint::test
