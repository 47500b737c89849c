// `stint guard check` judges the very target that it is given.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

// A branch that was mistyped is not the one that pushes go to.
TEST(GitCheck, FailsWhereTheHookGuardsAnotherBranch) {
  GitWorld world;
  const std::string clone = world.clone("a");
  const auto check = [&](const std::string& branch) {
    return world.stint()({"guard", "check", cat("git:", world.repository(), "#", branch)});
  };
  const Finished typo = world.stint()(
      {"guard", "install", world.repository(), "--branch", "mian", "--resource", "r"});
  EXPECT_EQ(typo.exit_code, 0) << typo.err;
  EXPECT_NE(typo.err.find("there is no branch refs/heads/mian"), std::string::npos) << typo.err;
  const Finished open = check("main");
  EXPECT_EQ(open.exit_code, 1) << open.out;
  EXPECT_NE(open.out.find("fail  hook: it guards refs/heads/mian and not refs/heads/main"),
            std::string::npos)
      << open.out;
  // And so it is.
  EXPECT_EQ(world.git(clone, {"push", "-q", "origin", "main"}).exit_code, 0);
  const Finished right = world.stint()(
      {"guard", "install", world.repository(), "--branch", "main", "--resource", "r"});
  EXPECT_EQ(right.exit_code, 0) << right.err;
  EXPECT_EQ(right.err.find("there is no branch"), std::string::npos) << right.err;
  const Finished shut = check("main");
  EXPECT_EQ(shut.exit_code, 0) << shut.out;
  EXPECT_NE(shut.out.find("ok    hook: the server itself refuses"), std::string::npos) << shut.out;
  EXPECT_EQ(check("docs").exit_code, 1);
  world.commit(clone, "another");
  EXPECT_NE(world.git(clone, {"push", "-q", "origin", "main"}).exit_code, 0);
}

TEST(GitCheck, KnowsPatternsOfBranches) {
  GitWorld world;
  const auto code = [&](const std::string& branch) {
    return world.stint()({"guard", "check", cat("git:", world.repository(), "#", branch)})
        .exit_code;
  };
  EXPECT_EQ(code("main"), 0);  // no hook: a warning, as before
  EXPECT_EQ(world.stint()({"guard", "install", world.repository()}).exit_code, 0);
  EXPECT_EQ(code("main"), 0);
  EXPECT_EQ(code("docs"), 0);
  world.server_config("stint.guarded", "refs/heads/release/* *");
  EXPECT_EQ(code("release/1"), 0);
  EXPECT_EQ(code("releases"), 1);
  EXPECT_EQ(code("main"), 1);
}

}  // namespace
}  // namespace stint::test
