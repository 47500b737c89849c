// A host that tells a push as done and does not keep it (gitaly#5991, facts A3): never told as
// done, and never as failed without a proof.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "guard/git_look.h"
#include "guard/git_target.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

enum class Lies { Once, Always };

// The client's git waits for the end of what is done after the report.
class UntrueHost : public testing::TestWithParam<Transport> {
 protected:
  // Takes refs of that pattern back to what they were, after it has told them as done.
  void lie(const std::string& pattern, Lies lies) const {
    const std::string once = world.dir().file("once");
    write_text(once, "");
    world.server_hook(
        "post-receive",
        cat(lies == Lies::Once ? cat("rm ", once, " 2>/dev/null || exit 0\n") : std::string(),
            "while read -r old new ref; do\n  case $ref in ", pattern,
            ") git update-ref \"$ref\" \"$old\" || touch ", world.dir().file("failed"),
            " ;; esac\ndone\necho >>", told()));
  }
  void be_honest() const { fs::remove(cat(world.repository(), "/hooks/post-receive")); }
  std::string told() const { return world.dir().file("told"); }
  void TearDown() override {
    EXPECT_TRUE(fs::exists(told())) << "nothing was told";
    EXPECT_FALSE(fs::exists(world.dir().file("failed"))) << "nothing was rolled back";
  }

  GitWorld world{GetParam()};
  std::string a = world.clone("a");
  Grant grant = world.take("a");
};

// EVIDENCE-OF: G5
TEST_P(UntrueHost, ThatKeepsNothingOnceIsSettled) {
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  const std::string main = world.main();
  world.commit(a, "more");
  lie("*", Lies::Once);
  const Finished done = world.push(a, grant);
  EXPECT_EQ(done.exit_code, 1) << done.err;
  EXPECT_NE(done.err.find("its refs do not show it"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("can no longer land"), std::string::npos) << done.err;
  EXPECT_EQ(world.main(), main);
  const Finished again = world.push(a, grant);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(world.main(), world.head(a));
}

// What settles it is such a push itself.
// EVIDENCE-OF: G5
TEST_P(UntrueHost, ThatNeverKeepsAnythingLeavesItUnknown) {
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  const std::string main = world.main();
  const std::string fence = world.fence();
  world.commit(a, "more");
  lie("*", Lies::Always);
  const Finished done = world.push(a, grant);
  EXPECT_EQ(done.exit_code, 14) << done.err;
  EXPECT_NE(done.err.find("its refs do not show it"), std::string::npos) << done.err;
  EXPECT_EQ(world.main(), main);
  EXPECT_EQ(world.fence(), fence);
}

// EVIDENCE-OF: G5
TEST_P(UntrueHost, ThatKeepsTheFenceAloneOnceGetsItAgain) {
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  world.commit(a, "more");
  lie("refs/heads/*", Lies::Once);
  const Finished done = world.push(a, grant);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(world.main(), world.head(a));
}

// EVIDENCE-OF: G5
TEST_P(UntrueHost, ThatAlwaysKeepsTheFenceAloneIsNeverDone) {
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  const std::string main = world.main();
  world.commit(a, "more");
  lie("refs/heads/*", Lies::Always);
  const Finished done = world.push(a, grant);
  EXPECT_EQ(done.exit_code, 14) << done.err;
  EXPECT_NE(done.err.find("so it was at every try"), std::string::npos) << done.err;
  EXPECT_EQ(world.main(), main);
}

// EVIDENCE-OF: G5
TEST_P(UntrueHost, IsNotSealedByItsWord) {
  lie("*", Lies::Always);
  const auto never = world.seal(grant);
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Code::UnknownOutcome) << never.error().message;
  EXPECT_EQ(world.fence(), "");
  lie("*", Lies::Once);
  const auto sealed = world.seal(grant);
  ASSERT_TRUE(sealed) << sealed.error().message;
  EXPECT_EQ(world.fence_line("token"), grant.token);
}

TEST_P(UntrueHost, IsNotBelievedByTheFallbackEither) {
  const std::vector<std::string> words = {"origin", "main", "--fallback", "seal-commit"};
  ASSERT_TRUE(world.seal(grant, false, ";fallback=seal-commit"));
  world.git(a, {"pull", "-q", "--rebase"});
  const std::string main = world.main();
  lie("*", Lies::Always);
  const Finished done = world.push(a, grant, words);
  EXPECT_EQ(done.exit_code, 14) << done.err;
  EXPECT_EQ(world.main(), main);
}

TEST_P(UntrueHost, IsBelievedWhereOneSaysSo) {
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  world.commit(a, "more");
  lie("*", Lies::Always);
  const Finished done = world.push(a, grant, {"origin", "main", "--look", "never"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(world.main(), world.head(a)) << "that is what it means";
  EXPECT_EQ(world.push(a, grant, {"origin", "main", "--look", "sometimes"}).exit_code, 2);
}

INSTANTIATE_TEST_SUITE_P(Over, UntrueHost, testing::Values(Transport::Http, Transport::Ssh),
                         [](const auto& one) { return std::string(word(one.param)); });

// A path is believed, unless one says otherwise.
class UntrueServer : public UntrueHost {};

TEST_P(UntrueServer, IsLookedAtWhereOneSaysSo) {
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  world.commit(a, "more");
  lie("*", Lies::Always);
  EXPECT_EQ(world.push(a, grant, {"origin", "main", "--look", "always"}).exit_code, 14);
  const Grant next = world.take("b");
  const auto sealed = world.seal(next, false, ";look=always");
  ASSERT_FALSE(sealed);
  EXPECT_EQ(sealed.error().code, Code::UnknownOutcome) << sealed.error().message;
}

INSTANTIATE_TEST_SUITE_P(Over, UntrueServer, testing::Values(Transport::Path, Transport::Daemon),
                         [](const auto& one) { return std::string(word(one.param)); });

TEST(GitLook, WhatCanOnlyBeGitIsBelieved) {
  for (const char* url :
       {"/srv/r.git", "../r.git", "./a:b", "file:///srv/r.git", "git://host/r.git"}) {
    EXPECT_TRUE(guard::is_plain_git(url)) << url;
    EXPECT_FALSE(guard::looks_at(guard::GitLook::ByServer, url)) << url;
    EXPECT_TRUE(guard::looks_at(guard::GitLook::Always, url)) << url;
  }
  for (const char* url :
       {"", "https://host/r.git", "http://host/r.git", "ssh://host/r.git", "git@host:r.git",
        "host:r.git", "git+ssh://host/r.git", "ext::sh -c 'x %S'", "ftp://host/r"}) {
    EXPECT_FALSE(guard::is_plain_git(url)) << url;
    EXPECT_TRUE(guard::looks_at(guard::GitLook::ByServer, url)) << url;
    EXPECT_FALSE(guard::looks_at(guard::GitLook::Never, url)) << url;
  }
}

TEST(GitLook, IsAWordOfTheTarget) {
  const auto target = guard::parse_git_target("git:https://h/r.git#main;look=never");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->look, guard::GitLook::Never);
  EXPECT_EQ(guard::canonical_git(*target, "https://h/r.git"),
            "git:https://h/r.git#refs/heads/main;look=never");
  EXPECT_TRUE(guard::same_fence("git:https://h/r.git#main;look=never", "git:https://h/r.git#main"));
  EXPECT_FALSE(guard::parse_git_target("git:https://h/r.git#main;look=sometimes"));
}

}  // namespace
}  // namespace stint::test
