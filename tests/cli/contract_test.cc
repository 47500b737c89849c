// The outer contract, where a script or an agent relies on it: what comes from the environment,
// what stands on which stream, which words are taken.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

// `stint acquire RESOURCE --env` as name and value.
std::map<std::string, std::string> granted_environment(const Stint& stint,
                                                       const std::string& resource) {
  std::map<std::string, std::string> out;
  const std::string text = stint({"acquire", resource, "--env"}).out;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (!line.starts_with("export ") || equals == line.npos) continue;
    out[std::string(line.substr(7, equals - 7))] =
        line.substr(equals + 2, line.size() - equals - 3);
  }
  return out;
}

Finished with(const Stint& stint, std::vector<std::string> words,
              const std::map<std::string, std::string>& environment) {
  Command command = stint.command(std::move(words));
  for (const auto& [name, value] : environment) command.env.emplace_back(name, value);
  return run(std::move(command));
}

bool one_json_object(const std::string& text) {
  return text.starts_with('{') && text.ends_with("}\n") && count_lines(text) == 1;
}

TEST(Contract, HolderVerbsTakeTheirDefaultsFromTheVariablesOfOneLease) {
  const Stint stint;
  const auto all = granted_environment(stint, "r");
  std::map<std::string, std::string> some = {{"XDG_STATE_HOME", stint.dir().file("elsewhere")},
                                             {"STINT_STORE", "sqlite:" + stint.database()}};
  for (const char* name : {"STINT_RESOURCE", "STINT_TOKEN", "STINT_CLAIM", "STINT_GENERATION"}) {
    ASSERT_TRUE(all.contains(name)) << name;
    some[name] = all.at(name);
  }
  EXPECT_EQ(with(stint, {"check"}, some).exit_code, 0);
  EXPECT_EQ(with(stint, {"renew"}, some).exit_code, 0);
  EXPECT_EQ(with(stint, {"progress", "half"}, some).exit_code, 0);
  EXPECT_EQ(with(stint, {"release"}, some).exit_code, 0);
  EXPECT_FALSE(stint.held("r"));
}

TEST(Contract, AnEntryOfHeldWithoutItsClaimIsStaleAndHarmsNoOther) {
  const Stint stint;
  const auto all = granted_environment(stint, "r");
  const std::map<std::string, std::string> held = {{"STINT_HELD", all.at("STINT_HELD")}};
  EXPECT_EQ(with(stint, {"run", "r", "--", "true"}, held).exit_code, 12);
  EXPECT_EQ(with(stint, {"run", "other", "--", "true"}, held).exit_code, 0);
  // The innermost lease's claim has a variable of its own.
  auto known = all;
  known.erase("STINT_HELD_CLAIMS");
  EXPECT_EQ(with(stint, {"run", "r", "--", "true"}, known).exit_code, 0);
}

TEST(Contract, HeldHasOneLinePerLeaseAndNoneEmpty) {
  const Stint stint;
  const Finished done = stint({"run", "a", "b", "--", "sh", "-c", "printf '%s' \"$STINT_HELD\""});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(split(done.out, '\n').size(), 2U) << done.out;
  EXPECT_FALSE(done.out.ends_with('\n'));
}

TEST(Contract, WithJsonStandardErrorIsOneDocument) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  const std::vector<std::vector<std::string>> all = {
      {"acquire", "r", "--wait", "50ms", "--json"},
      {"run", "r", "--on-held", "fail", "--json", "--", "true"},
      {"run", "x", "--json", "--", "/no/such/command"},
      {"slots", "nojob", "--json"},
      {"admit", "deploy", "--show", "k", "--json"},
      {"--json"},
      {"queue", "show", "q-00000000000000000000", "--json"},
  };
  for (const auto& words : all) {
    const Finished done = stint(words);
    EXPECT_NE(done.exit_code, 0) << words.front();
    EXPECT_TRUE(one_json_object(done.err)) << words.front() << ": " << done.err;
    EXPECT_NE(done.err.find(R"({"error":{"code":)"), std::string::npos) << done.err;
  }
}

TEST(Contract, WithJsonASkipIsOneDocumentAndNoError) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--owner", "ann"}).exit_code, 0);
  const Finished done = stint({"run", "r", "--json", "--", "true"});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.out, "");
  EXPECT_TRUE(one_json_object(done.err)) << done.err;
  EXPECT_TRUE(done.err.starts_with(R"({"skipped":{)")) << done.err;
  EXPECT_EQ(json_field(done.err, "owner"), "ann") << done.err;
  EXPECT_EQ(stint({"run", "r", "--json", "-q", "--", "true"}).err, "");
}

TEST(Contract, WithJsonALossIsTheErrorLost) {
  const Stint stint;
  const Finished done =
      stint({"run", "r", "--ttl", "2s", "--grace", "200ms", "--max-hold", "2s", "--on-lost",
             "echo $STINT_LOST_CAUSE", "--json", "--", "sleep", "60"});
  EXPECT_EQ(done.exit_code, 75);
  EXPECT_EQ(done.out, "max_hold\n");
  EXPECT_TRUE(one_json_object(done.err)) << done.err;
  EXPECT_NE(done.err.find(R"("code":"lost")"), std::string::npos);
  EXPECT_NE(done.err.find(R"("cause":"max_hold")"), std::string::npos);
  EXPECT_EQ(stint.events({"run_stopped", R"("cause":"max_hold")"}), 1);
}

TEST(Contract, ARefusalSaysTheSafeNextStep) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  EXPECT_NE(stint({"acquire", "r"}).err.find("wait for its end"), std::string::npos);
  EXPECT_NE(stint({"run", "r", "--", "true"}).err.find("--on-held wait"), std::string::npos);
}

TEST(Contract, ALossThatThisMachineForgotStillHasItsCause) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "100ms"}).exit_code, 0);
  ASSERT_TRUE(wait_until([&] { return !stint.held("r"); }));
  ASSERT_EQ(stint({"acquire", "r"}).out, "2\n");
  for (int i = 0; i < 2; ++i) {
    const Finished late = stint({"renew", "r", "--token", "1", "--json"});
    EXPECT_EQ(late.exit_code, 12);
    EXPECT_NE(late.err.find(R"("cause":"superseded")"), std::string::npos) << late.err;
    EXPECT_NE(late.err.find(R"("token":2)"), std::string::npos) << late.err;
  }
}

// EVIDENCE-OF: G4
TEST(Contract, ARenewalThatShortensNothingShowsNoMoreThanItsTtlLeft) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "60s"}).exit_code, 0);
  const Finished renewed = stint({"renew", "r", "--token", "1", "--ttl", "10s", "--json"});
  EXPECT_EQ(json_field(renewed.out, "ttl_ms"), "60000") << renewed.out;
}

TEST(Contract, NoneIsALengthWhereNothingIsTheDefault) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--cooldown", "0s"}).exit_code, 0);
  EXPECT_EQ(stint({"acquire", "r", "--wait", "0s"}).exit_code, 11);
  EXPECT_EQ(stint({"run", "r", "--on-held", "wait=0s", "--", "true"}).exit_code, 0);
  EXPECT_EQ(stint({"run", "r", "--on-held", "retry=0s", "--", "true"}).exit_code, 2);
  EXPECT_EQ(stint({"acquire", "s", "--ttl", "0s"}).exit_code, 2);
}

TEST(Contract, TheVersionIsAnOptionToo) {
  const Stint stint;
  const Finished version = stint({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out, stint({"version"}).out);
}

TEST(Contract, WordsOfAllGuardsAndOrdersAreTaken) {
  const Stint stint;
  const std::string target = "file:" + stint.dir().file("page");
  const std::string seal = cat(stint.binary(), " seal ", target, " --mode once");
  ASSERT_EQ(stint({"run", "r", "--", "sh", "-c", seal}).exit_code, 0);
  // Sealing uses nothing up.
  const std::string write =
      cat("echo x | ", stint.binary(), " write ", stint.dir().file("page"), " --mode once");
  EXPECT_EQ(stint({"run", "r", "--", "sh", "-c", cat(seal, " && ", write)}).exit_code, 0);
  const std::vector<std::string> transfer = {
      "transfer", "r", "--to", "bob", "--why", "moving", "--token", "2", "--reason", "transferred"};
  EXPECT_EQ(stint(transfer).exit_code, 0);
}

TEST(Contract, ATargetThatIsGoneCanBeForgotten) {
  const Stint stint;
  const std::string folder = stint.dir().file("site");
  ASSERT_EQ(run({.argv = {"mkdir", folder}}).exit_code, 0);
  ASSERT_EQ(stint({"run", "r", "--seal", cat("file:", folder, "/page"), "--", "rm", "-r", folder})
                .exit_code,
            0);
  EXPECT_EQ(stint({"revoke", "r", "--token", "1", "--why", "test"}).exit_code, 1);
  ASSERT_EQ(stint({"seal", cat("file:", folder, "/page"), "--forget", "--why", "gone", "--resource",
                   "r", "--token", "2"})
                .exit_code,
            0);
  EXPECT_EQ(stint({"revoke", "r", "--token", "2", "--why", "test"}).exit_code, 0);
}

// The refusal says since when, by whom, and how it ends; and one that was never remembered is not
// told as forgotten.
TEST(Contract, ATargetThatIsNotReachedCanBeForgottenInTheWordsThatItWasGivenIn) {
  const Stint stint;
  const std::string server = stint.dir().file("no.git");
  const std::string target = cat("git:", server, "#main");
  ASSERT_EQ(run({.argv = {"git", "init", "-q", "--bare", server}}).exit_code, 0);
  ASSERT_EQ(
      stint({"run", "r", "--seal", target, "--owner", "ann", "--", "rm", "-r", server}).exit_code,
      0);
  const Finished blocked = stint({"run", "r", "--", "true"});
  EXPECT_EQ(blocked.exit_code, 69);
  for (const char* told :
       {"since 20", "'ann', token 1", "#refs/heads/main' --resource 'r' --forget"}) {
    EXPECT_NE(blocked.err.find(told), std::string::npos) << told << "; " << blocked.err;
  }
  const Finished other =
      stint({"seal", "--forget", cat(target, "2"), "--resource", "r", "--why", "x"});
  EXPECT_EQ(other.exit_code, 3) << other.err;
  EXPECT_NE(other.err.find("no.git#refs/heads/main"), std::string::npos) << other.err;
  ASSERT_EQ(stint({"seal", "--forget", target, "--resource", "r", "--why", "typo"}).exit_code, 0);
  EXPECT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
}

// All branches of a repository share one fence: what is said of it is true.
TEST(Contract, OfTwoBranchesOneCanBeForgottenAndTheFenceIsStillSealed) {
  const Stint stint;
  const std::string server = stint.dir().file("r.git");
  ASSERT_EQ(run({.argv = {"git", "init", "-q", "--bare", server}}).exit_code, 0);
  const std::string main = cat("git:", server, "#main");
  const std::string side = cat("git:", server, "#side");
  ASSERT_EQ(stint({"run", "r", "--seal", main, "--seal", side, "--", "true"}).exit_code, 0);
  const auto forget = [&](const std::string& target) {
    return stint({"seal", "--forget", target, "--resource", "r", "--why", "x"}).err;
  };
  EXPECT_NE(forget(main).find("still sealed, for"), std::string::npos);
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const Finished fence =
      run({.argv = {"git", "--git-dir", server, "cat-file", "-p", "refs/stint/fence/r"}});
  EXPECT_NE(fence.out.find("\ntoken 2\n"), std::string::npos) << fence.out;
  EXPECT_NE(forget(side).find("none of them is sealed any more"), std::string::npos);
}

TEST(Contract, OfTooManyTargetsTheOneThatWasSealedLongestAgoMakesRoom) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "1h"}).exit_code, 0);
  std::vector<std::string> words = {"seal", "--resource", "r", "--token", "1"};
  for (int i = 0; i < 64; ++i) words.push_back(cat("admit:t", i));
  ASSERT_EQ(stint(words).exit_code, 0);
  ASSERT_EQ(stint({"acquire", "r", "--retake"}).exit_code, 0);
  words[4] = "2";
  std::erase(words, "admit:t17");
  ASSERT_EQ(stint(words).exit_code, 0);
  const Finished many = stint({"seal", "admit:more", "--resource", "r", "--token", "2"});
  EXPECT_EQ(many.exit_code, 0) << many.err;
  EXPECT_EQ(stint.events({"target_forgotten", "admit:t17", "longest ago"}), 1);
  EXPECT_EQ(stint.events({"target_forgotten"}), 1);
  const std::string shown = stint({"show", "r", "--json"}).out;
  EXPECT_EQ(shown.find("admit:t17\""), std::string::npos) << shown;
  EXPECT_NE(shown.find("admit:more"), std::string::npos) << shown;
}

TEST(Contract, EachCauseOfARefusedWriteHasItsLine) {
  const Stint stint;
  const std::string page = stint.dir().file("page");
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(stint({"run", "r", "--seal", "file:" + page, "--", "true"}).exit_code, 0);
  }
  for (const char* token : {"1", "1", "9"}) {
    Command write = stint.command({"write", page, "--resource", "r", "--token", token});
    EXPECT_EQ(run(std::move(write)).exit_code, 13);
  }
  EXPECT_EQ(stint.events({"write_refused", R"("cause":"stale")"}), 1);
  EXPECT_EQ(stint.events({"write_refused", R"("cause":"never_issued")"}), 1);
}

TEST(Contract, AFenceThatIsNoFileHoldsNobodyUp) {
  const Stint stint;
  const std::string page = stint.dir().file("page");
  ASSERT_EQ(run({.argv = {"mkfifo", stint.dir().file(".page.fence.4")}}).exit_code, 0);
  const Finished written =
      stint({"run", "r", "--", "sh", "-c", cat("echo x | ", stint.binary(), " write ", page)});
  EXPECT_FALSE(written.timed_out);
  EXPECT_EQ(written.exit_code, 69) << written.err;
}

TEST(Contract, WithoutAHomeTheWorkRunsAllTheSame) {
  const Stint stint;
  Command bare =
      stint.command({"--store", "sqlite:" + stint.dir().file("s.db"), "run", "r", "--", "true"});
  bare.env.emplace_back("HOME", "/proc/no/such/place");
  bare.env.emplace_back("XDG_STATE_HOME", "");
  const Finished done = run(std::move(bare));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("STINT_DEADLINE_FILE"), std::string::npos) << done.err;
}

TEST(Contract, AnEmptyFileIsToldAsSuch) {
  const Stint stint;
  write_text(stint.dir().file("empty"), "");
  const Finished done = stint({"--store", "sqlite:" + stint.dir().file("empty"), "ls"});
  EXPECT_EQ(done.exit_code, 69);
  EXPECT_NE(done.err.find("is empty"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace stint::test
