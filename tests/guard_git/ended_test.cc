// What git answered is known only where its end was seen.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

Finished push_under_ignored_sigchld(const GitWorld& world, const std::string& clone,
                                    const Grant& grant) {
  Command command = world.push_command(clone, grant);
  command.argv.insert(command.argv.begin(), {"env", "--ignore-signal=CHLD"});
  return run(command);
}

// EVIDENCE-OF: G5
TEST(GitEnded, APushThatAHookRefusedIsNotToldAsDone) {
  GitWorld world;
  const std::string a = world.clone("a");
  const Grant grant = world.take("a");
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  const std::string before = world.main();
  world.commit(a, "more");
  world.hook(a, "pre-push", "exit 1");
  const int code = world.push(a, grant).exit_code.value_or(-1);
  EXPECT_NE(code, 0);
  EXPECT_EQ(push_under_ignored_sigchld(world, a, grant).exit_code, code);
  EXPECT_EQ(world.main(), before);
  world.hook(a, "pre-push", "exit 0");
  world.server_hook("pre-receive", "exit 1");
  EXPECT_NE(push_under_ignored_sigchld(world, a, grant).exit_code, 0);
  EXPECT_EQ(world.main(), before);
  world.server_hook("pre-receive", "exit 0");
  EXPECT_EQ(push_under_ignored_sigchld(world, a, grant).exit_code, 0);
  EXPECT_EQ(world.main(), world.head(a));
}

}  // namespace
}  // namespace stint::test
