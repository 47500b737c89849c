// Who seals what, and what is remembered of it: each resource its own, by every verb that starts
// work; and no target that is gone, mistyped or one too many stops a resource for everybody.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

class SealRules : public ::testing::Test {
 protected:
  SealRules() { fs::create_directories(stint_.dir().file("config/stint")); }

  void configure(const std::string& seal) {
    write_text(stint_.dir().file("config/stint/config.toml"), cat("[seal]\n", seal));
  }
  Finished stint(std::vector<std::string> words) {
    Command command = stint_.command(std::move(words));
    command.env.emplace_back("XDG_CONFIG_HOME", stint_.dir().file("config"));
    return run(command);
  }
  // "token 2 of 'r'"; empty: it has no fence.
  std::string fence(const std::string& target) {
    const std::string said = stint_({"guard", "check", target}).out;
    const std::size_t at = said.find("token ");
    return at == said.npos ? "" : said.substr(at, said.find('\n', at) - at);
  }
  std::string file(const std::string& name) { return stint_.dir().file(name); }
  std::string bare(const std::string& name) {
    EXPECT_EQ(run({.argv = {"git", "init", "-q", "--bare", file(name)}}).exit_code, 0);
    return cat("git:", file(name), "#main");
  }

  Stint stint_;
};

// EVIDENCE-OF: G5
TEST_F(SealRules, EachResourceThatIsTakenSealsItsOwn) {
  configure("a = [\"admit:a\"]\nb = [\"admit:b\"]\n");
  EXPECT_EQ(stint({"run", "b", "--no-seal", "--", "true"}).exit_code, 0);
  EXPECT_EQ(stint({"run", "a", "b", "--", "true"}).exit_code, 0);
  EXPECT_EQ(fence("admit:a"), "token 1 of 'a'");
  EXPECT_EQ(fence("admit:b"), "token 2 of 'b'");
}

// EVIDENCE-OF: G5
TEST_F(SealRules, WithOrTheResourceThatIsTakenSealsItsOwnAndNotTheOthers) {
  const std::string page = cat("file:", file("page"));
  configure(cat("a = [\"", page, "\"]\nb = [\"admit:b\"]\n"));
  ASSERT_EQ(stint({"run", "a", "--", "true"}).exit_code, 0);
  ASSERT_EQ(stint({"acquire", "a", "--ttl", "1h"}).out, "2\n");
  const Finished other = stint({"run", "a", "--or", "b", "--seal", "admit:x", "--", "true"});
  EXPECT_EQ(other.exit_code, 0) << other.err;
  EXPECT_EQ(fence(page), "token 1 of 'a'");
  EXPECT_EQ(fence("admit:b"), "token 1 of 'b'");
  EXPECT_EQ(fence("admit:x"), "token 1 of 'b'") << "--seal belongs to the one that was taken";
}

TEST_F(SealRules, OfSeveralTheFirstNamedHasWhatIsGivenUnlessItSaysWhose) {
  EXPECT_EQ(
      stint({"run", "b", "a", "--seal", "admit:x", "--seal", "a=admit:y", "--", "true"}).exit_code,
      0);
  EXPECT_EQ(fence("admit:x"), "token 1 of 'b'");
  EXPECT_EQ(fence("admit:y"), "token 1 of 'a'");
  const Finished wrong = stint({"run", "a", "--seal", "c=admit:z", "--", "true"});
  EXPECT_EQ(wrong.exit_code, 2) << wrong.err;
  EXPECT_NE(wrong.err.find("none of the resources"), std::string::npos) << wrong.err;
  EXPECT_EQ(stint_.lease("a", "token"), "1") << "nothing was acquired";
  // A target may have a '=' of its own.
  EXPECT_EQ(stint({"run", "a", "--seal", "admit:z=1", "--", "true"}).exit_code, 0);
  EXPECT_EQ(fence("admit:z=1"), "token 2 of 'a'");
}

// EVIDENCE-OF: G5
TEST_F(SealRules, AWorkerSealsBeforeEachItem) {
  configure("r = [\"admit:c\"]\n");
  ASSERT_EQ(stint({"run", "r", "--seal", "admit:m", "--", "true"}).exit_code, 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(stint({"queue", "put", "q", "x", "--create"}).exit_code, 0);
  }
  const Finished worked = stint(
      {"work", "q", "--with", "r", "--seal", "admit:g", "--until-empty", "--", "sh", "-c",
       cat(stint_.binary(), " guard check admit:c; ", stint_.binary(), " guard check admit:m")});
  EXPECT_EQ(worked.exit_code, 0) << worked.err;
  EXPECT_EQ(count_lines(worked.out, "token 2 of 'r'"), 2) << worked.out;
  EXPECT_EQ(count_lines(worked.out, "token 3 of 'r'"), 2) << worked.out;
  EXPECT_EQ(fence("admit:g"), "token 3 of 'r'");
  EXPECT_EQ(stint({"work", "q", "--seal", "admit:g", "--until-empty", "--", "true"}).exit_code, 2);
}

// EVIDENCE-OF: G5
TEST_F(SealRules, AWorkerWhoseTargetRefusesStartsNothingAndGivesTheItemBack) {
  ASSERT_EQ(stint({"run", "other", "--seal", "admit:x", "--", "true"}).exit_code, 0);
  const std::string id(trim(stint({"queue", "put", "q", "x", "--create"}).out));
  const Finished worked = stint({"work", "q", "--with", "r", "--seal", "admit:x", "--until-empty",
                                 "--", "touch", file("mark")});
  EXPECT_EQ(worked.exit_code, 13) << worked.err;
  EXPECT_FALSE(fs::exists(file("mark")));
  EXPECT_EQ(json_field(stint({"queue", "show", id, "--json"}).out, "state"), "waiting");
  EXPECT_FALSE(stint_.held("r"));
  EXPECT_EQ(stint({"work", "q", "--with", "r", "--until-empty", "--", "true"}).exit_code, 0);
}

// EVIDENCE-OF: G5
TEST_F(SealRules, OnceAndAdmitSealLikeARun) {
  configure("\"once/k\" = [\"admit:o\"]\nr = [\"admit:c\"]\n");
  ASSERT_EQ(stint({"run", "r", "--seal", "admit:m", "--", "true"}).exit_code, 0);
  EXPECT_EQ(stint({"once", "k", "--seal", "admit:p", "--", "true"}).exit_code, 0);
  EXPECT_EQ(fence("admit:o"), "token 1 of 'once/k'");
  EXPECT_EQ(fence("admit:p"), "token 1 of 'once/k'");
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "1h"}).out, "2\n");
  const Finished admitted =
      stint({"admit", "d", "--resource", "r", "--token", "2", "--seal", "admit:g", "--", "true"});
  EXPECT_EQ(admitted.exit_code, 0) << admitted.err;
  for (const char* target : {"admit:c", "admit:m", "admit:g", "admit:d"}) {
    EXPECT_EQ(fence(target), "token 2 of 'r'") << target;
  }
}

TEST_F(SealRules, AFirstSealThatFailsForCertainStopsNobodyElse) {
  const std::string closed = bare("closed.git");
  write_text(file("closed.git/hooks/pre-receive"), "#!/bin/sh\nexit 1\n");
  fs::permissions(file("closed.git/hooks/pre-receive"), fs::perms::owner_all);
  for (const std::string& target :
       {cat("git:", file("none.git"), "#main"), closed, std::string("file:/proc/page"),
        cat("file:", file("there/is/none/page")), std::string("admit:taken"),
        std::string("postgres://u@127.0.0.1:1/db#r"), std::string("proxy:http://127.0.0.1:1/")}) {
    ASSERT_EQ(stint({"run", "other", "--seal", "admit:taken", "--", "true"}).exit_code, 0);
    const Finished refused = stint({"run", "r", "--seal", target, "--", "touch", file("mark")});
    EXPECT_EQ(refused.exit_code, target == "admit:taken" ? 13 : 69) << target << refused.err;
    EXPECT_NE(refused.err.find("not started"), std::string::npos) << refused.err;
    const Finished next = stint({"run", "r", "--", "true"});
    EXPECT_EQ(next.exit_code, 0) << target << ": " << next.err;
    const Finished sealed = stint({"run", "r", "--", stint_.binary(), "seal", target});
    EXPECT_NE(sealed.exit_code, 0) << target;
    EXPECT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0) << target << " by stint seal";
  }
  EXPECT_FALSE(fs::exists(file("mark")));
  EXPECT_EQ(
      stint({"run", "r", "--", "sh", "-c", cat("echo x | ", stint_.binary(), " write /proc/x")})
          .exit_code,
      69);
  EXPECT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  EXPECT_NE(stint({"show", "r", "--json"}).out.find("\"targets\":[]"), std::string::npos);
}

TEST_F(SealRules, AFolderThatIsNotHereIsPassedOverAndSealedAgainWhenItIsBack) {
  const auto target = [&](const std::string& scheme) { return cat(scheme, file("public/page")); };
  fs::create_directories(file("public"));
  configure(cat("r = [\"", target("file:"), "\"]\n"));
  ASSERT_EQ(stint({"run", "r", "--", "rm", "-rf", file("public")}).exit_code, 0);
  for (const char* no_seal : {"", "--no-seal"}) {
    std::vector<std::string> words = {"run", "r", "--", "true"};
    if (*no_seal != '\0') words.insert(words.begin() + 2, no_seal);
    const Finished next = stint(words);
    EXPECT_EQ(next.exit_code, 0) << next.err;
  }
  EXPECT_EQ(stint_.events({"target_absent", "public/page"}), 1);
  fs::create_directories(file("public"));
  const Finished back = stint({"run", "r", "--", "true"});
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(fence(target("file:")), "token 4 of 'r'");
  EXPECT_EQ(stint_.events({"fence_made_anew", "public/page"}), 1);
}

TEST_F(SealRules, AWipedFolderIsWrittenToByThePresentHolder) {
  const Finished done =
      stint({"run", "r", "--", "sh", "-c",
             cat("set -e; mkdir ", file("out"), "; echo 1 | ", stint_.binary(), " write ",
                 file("out/a"), "; rm -rf ", file("out"), "; mkdir ", file("out"), "; echo 2 | ",
                 stint_.binary(), " write ", file("out/a"))});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(read_text(file("out/a")), "2\n");
  EXPECT_EQ(stint_.events({"fence_made_anew", "out/a"}), 1);
}

TEST_F(SealRules, AWipedRepositoryIsPushedToByThePresentHolder) {
  const std::string target = bare("s.git");
  const std::string work = file("work");
  ASSERT_EQ(run({.argv = {"sh", "-c",
                          cat("git init -q -b main ", work, " && cd ", work,
                              " && git config user.name t && git config user.email t@t && git "
                              "commit -q --allow-empty -m 1 && git remote add origin ",
                              file("s.git"))}})
                .exit_code,
            0);
  const std::string push = cat(stint_.binary(), " push origin main");
  Command again = stint_.command(
      {"run", "r", "--", "sh", "-c",
       cat("set -e; ", push, "; rm -rf ", file("s.git"), "; git init -q --bare ", file("s.git"),
           "; rm -rf .git/stint*; git commit -q --allow-empty -m 2; ", push)});
  again.cwd = work;
  const Finished done = run(again);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(stint_.events({"fence_made_anew", "s.git"}), 1);
}

// EVIDENCE-OF: G5
// EVIDENCE-OF: G5
TEST_F(SealRules, ABranchOfAnotherResourceIsRefusedBeforeAnythingStarts) {
  const std::string main = bare("s.git");
  const std::string side = cat("git:", file("s.git"), "#side");
  const auto refs = [&] {
    return run({.argv = {"git", "--git-dir", file("s.git"), "for-each-ref"}}).out;
  };
  ASSERT_EQ(stint({"run", "a", "--seal", main, "--", "true"}).exit_code, 0);
  for (const bool hooked : {false, true}) {
    if (hooked) {
      ASSERT_EQ(stint({"guard", "install", file("s.git"), "--branch", "main", "--resource", "a"})
                    .exit_code,
                0);
    }
    const Finished refused = stint({"run", "b", "--seal", main, "--", "touch", file("mark")});
    EXPECT_EQ(refused.exit_code, 13) << refused.err;
    EXPECT_NE(refused.err.find("fenced for the resource 'a'"), std::string::npos) << refused.err;
    EXPECT_FALSE(fs::exists(file("mark")));
    EXPECT_EQ(count_lines(refs(), "refs/stint/fence/b"), 0) << refs();
  }
  EXPECT_EQ(stint({"run", "b", "--seal", side, "--", "true"}).exit_code, 0);
  EXPECT_EQ(stint({"run", "b", "--seal", main, "--", "true"}).exit_code, 13)
      << "its own fence stands there now";
  EXPECT_EQ(stint({"run", "a", "b", "--", "true"}).exit_code, 0);
  ASSERT_EQ(stint({"seal", main, "--resource", "a", "--forget", "--why", "moves to b"}).exit_code,
            0);
  EXPECT_EQ(stint({"run", "b", "--seal", main, "--", "true"}).exit_code, 0);
}

TEST_F(SealRules, APushToABranchOfAnotherResourceIsRefused) {
  const std::string main = bare("s.git");
  ASSERT_EQ(stint({"run", "a", "--seal", main, "--", "true"}).exit_code, 0);
  const Finished pushed =
      stint({"run", "b", "--", "sh", "-c",
             cat("cd ", file(""),
                 " && git init -q -b main w && cd w && git -c user.name=t -c "
                 "user.email=t@t commit -q --allow-empty -m 1 && git remote add origin ",
                 file("s.git"), " && ", stint_.binary(), " push origin main")});
  EXPECT_EQ(pushed.exit_code, 13) << pushed.err;
  EXPECT_EQ(run({.argv = {"git", "--git-dir", file("s.git"), "for-each-ref"}}).out.find("heads"),
            std::string::npos);
}

// EVIDENCE-OF: G5
TEST_F(SealRules, WithOrTheRepositoryOfTheOneThatIsHeldIsLeftAlone) {
  const std::string main = bare("s.git");
  configure(cat("a = [\"", main, "\"]\n"));
  ASSERT_EQ(stint({"run", "a", "--", "true"}).exit_code, 0);
  ASSERT_EQ(stint({"acquire", "a", "--ttl", "1h"}).out, "2\n");
  EXPECT_EQ(stint({"run", "a", "--or", "b", "--", "true"}).exit_code, 0);
  EXPECT_EQ(count_lines(run({.argv = {"git", "--git-dir", file("s.git"), "for-each-ref"}}).out,
                        "fence/b"),
            0);
}

TEST_F(SealRules, AHundredDailyFilesStopNobody) {
  const Finished days = stint({"run", "r", "--", "sh", "-c",
                               cat("for i in $(seq 100); do echo x | ", stint_.binary(), " write ",
                                   file("day"), "-$i || exit 1; done")});
  EXPECT_EQ(days.exit_code, 0) << days.err;
  EXPECT_EQ(stint_.events({"target_forgotten", "longest ago"}),
            100 - count_lines(stint({"show", "r"}).out, "file:"));
  const Finished next = stint({"run", "r", "--", "true"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(fence(cat("file:", file("day-100"))), "token 2 of 'r'");
}

TEST_F(SealRules, ShowListsTheTargetsWithTokenAndTime) {
  ASSERT_EQ(stint({"run", "r", "--seal", "admit:x", "--", "true"}).exit_code, 0);
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const std::string shown = stint({"show", "r"}).out;
  EXPECT_NE(shown.find("admit:x  2      20"), std::string::npos) << shown;
  const std::string json = stint({"show", "r", "--json"}).out;
  EXPECT_NE(json.find("{\"target\":\"admit:x\",\"sealed\":true,\"token\":2,\"at_ms\":"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("\"first_token\":1,\"since_ms\":"), std::string::npos) << json;
}

TEST_F(SealRules, ARunThatATargetRefusedIsOnRecordWithTheTarget) {
  ASSERT_EQ(stint({"run", "other", "--seal", "admit:x", "--", "true"}).exit_code, 0);
  ASSERT_EQ(stint({"run", "r", "--seal", "admit:x", "--owner", "ann", "--", "true"}).exit_code, 13);
  EXPECT_EQ(stint_.events({"run_refused", "\"admit:x\"", "\"foreign\"", "\"ann\"", "\"token\":1"}),
            1);
}

TEST_F(SealRules, AGuardOfAFileOrADirectoryIsTakenAwayWhole) {
  const auto names = [&] {
    std::vector<std::string> out;
    for (const auto& one : fs::directory_iterator(file("www")))
      out.push_back(one.path().filename());
    std::ranges::sort(out);
    return out;
  };
  fs::create_directories(file("www/tree"));
  write_text(file("www/page"), "x");
  const std::vector<std::string> before = names();
  const std::string page = cat("file:", file("www/page"));
  const std::string tree = cat("dir:", file("www/tree"));
  ASSERT_EQ(stint({"run", "r", "--seal", page, "--seal", tree, "--", "true"}).exit_code, 0);
  ASSERT_NE(names(), before);
  write_text(file("www/.page.stage.1.0123456789abcdef0123456789abcdef"), "left");
  for (const std::string& target : {page, tree}) {
    const Finished done = stint({"guard", "uninstall", target});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_NE(cat(done.out, done.err).find("'r'"), std::string::npos) << done.out << done.err;
  }
  EXPECT_EQ(names(), before);
  EXPECT_EQ(stint({"guard", "uninstall", page}).exit_code, 0) << "again";
  EXPECT_EQ(stint({"guard", "uninstall", cat("file:", file("no/such/page"))}).exit_code, 0);
  EXPECT_EQ(stint({"guard", "install", page}).exit_code, 2);
}

}  // namespace
}  // namespace stint::test
