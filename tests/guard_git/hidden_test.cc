// A server that hides the place of the fences: noticed by the first holder and by each that comes
// later, with words, and with nothing changed.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

class GitHidden : public testing::TestWithParam<Transport> {
 protected:
  std::string refs() const {
    return world.git(a, {"--git-dir", world.repository(), "for-each-ref"}).out;
  }
  void hide(const std::string& by) { world.server_config(by, "refs/stint"); }
  void expect_told(const Finished& done) {
    EXPECT_EQ(done.exit_code, 1) << done.err;
    EXPECT_NE(done.err.find("hide"), std::string::npos) << done.err;
    EXPECT_NE(done.err.find("hideRefs"), std::string::npos) << done.err;
    EXPECT_NE(done.err.find("--fence-ref"), std::string::npos) << done.err;
  }

  GitWorld world{GetParam()};
  std::string a = world.clone("a");
  Grant grant = world.take("a");
};

TEST_P(GitHidden, IsToldByTheFirstPushAndByASealAndNothingIsChanged) {
  const std::string before = refs();
  for (const char* by : {"uploadpack.hideRefs", "receive.hideRefs", "transfer.hideRefs"}) {
    SCOPED_TRACE(by);
    hide(by);
    expect_told(world.push(a, grant));
    EXPECT_EQ(refs(), before);
    const auto sealed = world.seal(grant);
    ASSERT_FALSE(sealed);
    EXPECT_EQ(sealed.error().code, Code::Failed) << sealed.error().message;
    EXPECT_NE(sealed.error().message.find("hideRefs"), std::string::npos);
    EXPECT_EQ(refs(), before);
    world.git(a, {"--git-dir", world.repository(), "config", "--unset", by});
  }
  const Finished done = world.push(a, grant);
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

// The line came after the first fence: whoever comes next is told what is the matter.
TEST_P(GitHidden, AfterTheFirstFenceIsToldToWhoComesNext) {
  ASSERT_TRUE(world.seal(grant));
  const Grant next = world.take("b");
  const std::string before = refs();
  for (const char* by : {"uploadpack.hideRefs", "receive.hideRefs", "transfer.hideRefs"}) {
    SCOPED_TRACE(by);
    hide(by);
    const auto sealed = world.seal(next);
    ASSERT_FALSE(sealed);
    EXPECT_NE(sealed.error().message.find("hideRefs"), std::string::npos) << sealed.error().message;
    EXPECT_EQ(refs(), before);
    world.git(a, {"--git-dir", world.repository(), "config", "--unset", by});
  }
  EXPECT_TRUE(world.seal(next));
}

TEST_P(GitHidden, IsWhatCheckTries) {
  const std::string before = refs();
  const auto check = [&] {
    Command command = world.push_command(a, grant, {});
    command.argv.pop_back();  // "push"
    command.argv.insert(command.argv.end(), {"guard", "check", "git:origin/main"});
    return run(command, Millis(60'000));
  };
  EXPECT_EQ(check().exit_code, 0);
  for (const char* by : {"uploadpack.hideRefs", "receive.hideRefs", "transfer.hideRefs"}) {
    SCOPED_TRACE(by);
    hide(by);
    const Finished done = check();
    EXPECT_EQ(done.exit_code, 1) << done.out << done.err;
    EXPECT_NE(done.out.find("hid"), std::string::npos) << done.out << done.err;
    EXPECT_EQ(refs(), before);
    world.git(a, {"--git-dir", world.repository(), "config", "--unset", by});
  }
}

// Where it cannot be taken back, that is said.
TEST_P(GitHidden, AFenceThatStaysIsTold) {
  hide("uploadpack.hideRefs");
  world.server_hook("update", "case $3 in 000000*) exit 1 ;; esac");
  const Finished done = world.push(a, grant);
  expect_told(done);
  EXPECT_NE(done.err.find("could not be taken back"), std::string::npos) << done.err;
  EXPECT_EQ(world.main(), world.at("refs/heads/main"));
}

INSTANTIATE_TEST_SUITE_P(Over, GitHidden, testing::Values(Transport::Path, Transport::Http),
                         [](const auto& one) { return std::string(word(one.param)); });

}  // namespace
}  // namespace stint::test
