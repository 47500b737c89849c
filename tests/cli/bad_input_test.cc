// Bad input: exit 2, one clear line, nothing changed.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

struct Bad {
  std::vector<std::string> words;
  std::string says;
};

std::vector<std::string> seventeen_resources() {
  std::vector<std::string> words = {"run"};
  for (int i = 0; i < 17; ++i) words.push_back(cat("r", i));
  words.insert(words.end(), {"--", "true"});
  return words;
}

std::vector<Bad> bad_inputs() {
  return {
      {{"run", "", "--", "true"}, "is empty"},
      {{"run", std::string(513, 'x'), "--", "true"}, "513 bytes"},
      {{"run", "a\xff", "--", "true"}, "not valid UTF-8"},
      {{"run", "a\nb", "--", "true"}, "control characters"},
      {{"run", "a\x7f", "--", "true"}, "control characters"},
      {{"run", "r", "--ttl", "0", "--", "true"}, "needs a unit"},
      {{"run", "r", "--ttl", "0s", "--", "true"}, "is zero"},
      {{"run", "r", "--ttl", "-5s", "--", "true"}, "negative"},
      {{"run", "r", "--ttl", "10", "--", "true"}, "needs a unit"},
      {{"run", "r", "--ttl", "300y", "--", "true"}, "units are"},
      {{"run", "r", "--ttl", "400d", "--", "true"}, "longer than a year"},
      {{"run", "r", "--ttl", "99999999999999999999s", "--", "true"}, "too large"},
      {{"run", "r", "--ttl", "500ms", "--", "true"}, "1s is the least"},
      {{"acquire", "r", "--ttl", "50ms"}, "too short for this store"},
      {{"run", "r", "--ttl", "10s", "--grace", "8s", "--", "true"}, "too short for a kill grace"},
      {{"run", "r", "--ttl", "10s", "--max-hold", "5s", "--", "true"}, "longer than max_hold"},
      {{"run", "r", "--at-least", "20m", "--max-hold", "10m", "--", "true"},
       "longer than max_hold"},
      {{"renew", "r", "--token", "0"}, "not a token"},
      {{"renew", "r", "--token", "9223372036854775808"}, "not a token"},
      {{"renew", "r", "--token", "abc"}, "not a token"},
      {{"renew", "r", "--token", "-1"}, "not a token"},
      {{"doctor", "--accept-restored", "--why", "w", "--past", "9007199254740991"},
       "few tokens are left"},
      {{"renew", "r"}, "--token N is missing"},
      {{"run", "r", "true"}, "command to run is missing"},
      {{"run", "r", "--"}, "command to run is missing"},
      {{"run", "--", "true"}, "something is missing"},
      {{"run", "r", "--tll", "5s", "--", "true"}, "did you mean --ttl?"},
      {{"rnu", "r", "--", "true"}, "did you mean run?"},
      {{"run", "r", "r", "--", "true"}, "named twice"},
      {{"run", "r", "--on-held", "steal", "--", "true"}, "none of skip"},
      {{"run", "r", "--on-held", "wait=5", "--", "true"}, "needs a unit"},
      {{"run", "r", "--held-exit", "300", "--", "true"}, "from 0 to 255"},
      {{"run", "r", "--ttl", "5s", "--ttl", "6s", "--", "true"}, "given twice"},
      {{"run", "r", "--ttl"}, "needs a value"},
      {{"run", "r", "--progress-on", "output", "--", "true"}, "--progress-timeout"},
      {{"run", "r", "--owner", "a\nb", "--", "true"}, "control characters"},
      {{"ls", "a", "b"}, "too many words"},
      {{"revoke", "r", "--token", "1"}, "--why"},
      {{"revoke", "r", "--why", "x"}, "--token"},
      {{"revoke", "r", "--token", "1", "--why", "x", "--reason", "first"}, "--reason is one of"},
      {{"transfer", "r", "--token", "1", "--why", "x"}, "--to"},
      {{"completion", "tcsh"}, "bash, zsh and fish"},
      {{"help", "nothing"}, "there is no help"},
      {{"ls", "--store", "mysql://x"}, "not known"},
      {{"ls", "--store", "nonsense"}, "not a store URL"},
      {{"ls", "--store", "sqlite:/x?colour=red"}, "unknown option"},
      {{"ls", "--store", "postgres://me:secret@host/db"}, ""},
      {seventeen_resources(), "at most 16"},
  };
}

TEST(BadInput, ExitsTwoWithOneClearLineAndChangesNothing) {
  const Stint stint;
  for (const Bad& bad : bad_inputs()) {
    const Finished done = stint(bad.words);
    std::string shown;
    for (const std::string& word : bad.words) shown += printable(word).substr(0, 40) + " ";
    EXPECT_EQ(done.exit_code, 2) << shown << done.err;
    EXPECT_EQ(done.out, "") << shown;
    EXPECT_EQ(count_lines(done.err), 1) << shown << done.err;
    EXPECT_NE(done.err.find(bad.says), std::string::npos) << shown << done.err;
    EXPECT_EQ(done.err.find("secret"), std::string::npos) << shown << done.err;
  }
  EXPECT_EQ(stint({"ls", "--json"}).out, "[]\n");
}

TEST(BadInput, AsJsonIsAnErrorObject) {
  const Stint stint;
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"run", "", "--json", "--", "true"},
                                             {"nosuch", "--json"},
                                             {"--json", "renew", "r", "--token", "x"}}) {
    const Finished done = stint(words);
    EXPECT_EQ(done.exit_code, 2);
    EXPECT_EQ(done.err.rfind(R"({"error":{"code":"invalid","message":)", 0), 0U) << done.err;
  }
}

TEST(BadInput, APasswordInAFlagIsRefused) {
  const Stint stint;
  const Finished done = stint({"ls", "--store", "postgres://u:secret@h/x"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_NE(done.err.find("password"), std::string::npos) << done.err;
  EXPECT_EQ(done.err.find("secret"), std::string::npos) << done.err;
}

// It ends where a path or a query seems to begin.
TEST(BadInput, APasswordWithASlashIsNotRepeated) {
  const Stint stint;
  for (const char* url : {"postgres://u:se/cret@h/db", "redis://u:se?cret@h/1",
                          "postgres://u:se#cret@h/db?timeout=1s"}) {
    Command command = stint.command({"ls"});
    command.env.emplace_back("STINT_STORE", url);
    const Finished done = run(command);
    EXPECT_EQ(done.exit_code, 2) << url;
    EXPECT_NE(done.err.find("%2F"), std::string::npos) << done.err;
    for (const char* part : {"se/", "se?", "se#", "cret"}) {
      EXPECT_EQ(done.err.find(part), std::string::npos) << done.err;
    }
  }
}

TEST(BadInput, AStoreFileThatCannotBeReadIsNoReasonToTakeAnother) {
  const Stint stint;
  Command command = stint.command({"ls"});
  command.env.emplace_back("STINT_STORE", "memory:");
  command.env.emplace_back("STINT_STORE_FILE", stint.dir().path());
  const Finished done = run(command);
  EXPECT_NE(done.exit_code, 0) << done.out;
  EXPECT_NE(done.err.find("STINT_STORE_FILE"), std::string::npos) << done.err;
  command.env.back().second = stint.dir().file("gone");
  EXPECT_EQ(run(command).exit_code, 0);
}

TEST(BadInput, ADamagedAncestryIsAnErrorNotAGuess) {
  const Stint stint;
  Command command = stint.command({"run", "r", "--", "true"});
  command.env.emplace_back("STINT_HELD", "nonsense");
  EXPECT_EQ(run(command).exit_code, 2);
}

TEST(NoWords, PrintHelpAndExitTwo) {
  const Stint stint;
  EXPECT_EQ(stint({}).exit_code, 2);
  EXPECT_EQ(stint({"--help"}).exit_code, 0);
  EXPECT_NE(stint({"help", "run"}).out.find("Examples:"), std::string::npos);
  EXPECT_NE(stint({"run", "--help"}).out.find("--on-held"), std::string::npos);
  EXPECT_NE(stint({"help", "exit-codes"}).out.find("75"), std::string::npos);
  EXPECT_NE(stint({"help", "environment"}).out.find("STINT_HELD"), std::string::npos);
}

}  // namespace
}  // namespace stint::test
