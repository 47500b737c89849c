// The first pushes of a holder to a repository that has no fence yet: several at once, and one that
// was killed between remembering the target and sealing it.
#include <gtest/gtest.h>

#include <csignal>

#include "base/text.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

class GitFirstPush : public testing::Test {
 protected:
  void SetUp() override {
    a = world.clone("a");
    b = world.clone("b");
    // The seal is the first push that comes there: the target is remembered, and not sealed.
    world.server_hook("pre-receive", barrier.script());
    barrier.arm();
  }
  Command push_of(const std::string& clone, const Grant& grant) const {
    return world.push_command(clone, grant,
                              {"origin", cat("HEAD:refs/heads/of-", clone == a ? "a" : "b")});
  }
  // The killed client's seal still waits at the server, and loses when it goes on.
  void kill_before_the_seal(const Grant& grant) const {
    Child killed(push_of(a, grant));
    ASSERT_TRUE(wait_until([&] { return barrier.arrived(); }, Millis(30'000))) << killed.err();
    killed.signal(SIGKILL);
    ASSERT_TRUE(killed.wait(Millis(30'000)));
  }

  GitWorld world;
  const Barrier barrier{world.dir().file("barrier")};
  std::string a;
  std::string b;
};

TEST_F(GitFirstPush, TwoOfOneHolderAtOnceBothLand) {
  const Grant grant = world.take("holder");
  Child one(push_of(a, grant));
  ASSERT_TRUE(wait_until([&] { return barrier.arrived(); }, Millis(30'000))) << one.err();
  const Finished two = run(push_of(b, grant));
  EXPECT_EQ(two.exit_code, 0) << two.err;
  barrier.let_go();
  const auto end = one.wait(Millis(60'000));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 0) << one.err();
  EXPECT_EQ(world.at("refs/heads/of-a"), world.head(a));
  EXPECT_EQ(world.at("refs/heads/of-b"), world.head(b));
  EXPECT_EQ(world.fence_line("token"), grant.token);
}

TEST_F(GitFirstPush, AHolderWhoseFirstPushWasKilledBeforeItsSealGoesOn) {
  const Grant grant = world.take("holder");
  kill_before_the_seal(grant);
  const Finished next = run(push_of(b, grant));
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(world.at("refs/heads/of-b"), world.head(b));
  barrier.let_go();
}

TEST_F(GitFirstPush, ALaterHolderGoesOnToo) {
  kill_before_the_seal(world.take("holder"));
  const Grant later = world.take("later");
  const Finished next = run(push_of(b, later));
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(world.at("refs/heads/of-b"), world.head(b));
  EXPECT_EQ(world.fence_line("token"), later.token);
  barrier.let_go();
}

}  // namespace
}  // namespace stint::test
