// Where a push goes is looked at again whenever git's settings may have changed.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

class GitPushUrls : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(world.push(a, grant).exit_code, 0);
    world.commit(a, "by a hint");
    ASSERT_EQ(world.push(a, grant).exit_code, 0);
    world.commit(a, "to several");
    main = world.main();
    fence = world.fence();
  }
  void expect_refused() const {
    const Finished refused = world.push(a, grant);
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find("several push URLs"), std::string::npos) << refused.err;
    EXPECT_EQ(world.main(), main);
    EXPECT_EQ(world.fence(), fence);
  }
  // Two URLs, of which the first is the server.
  void add_urls(const std::vector<std::string>& config) const {
    for (const std::string& url : {world.url(), world.dir().file("other.git")}) {
      std::vector<std::string> words = config;
      words.insert(words.end(), {"--add", "remote.origin.pushurl", url});
      ASSERT_EQ(world.git(a, words).exit_code, 0);
    }
  }

  GitWorld world;
  const std::string a = world.clone("a");
  const Grant grant = world.take("a");
  std::string main;
  std::string fence;
};

// The first server had the commit and a new fence, the second had not, and it was told as "nothing
// was changed".
TEST_F(GitPushUrls, SeveralAreRefusedAlsoAfterAFirstPush) {
  add_urls({"config"});
  expect_refused();
}

TEST_F(GitPushUrls, SeveralOfTheUserToo) {
  add_urls({"config", "--global"});
  expect_refused();
}

TEST_F(GitPushUrls, SeveralInAFileThatIsIncludedToo) {
  const std::string included = world.dir().file("included");
  write_text(included, "");
  for (const std::string& where : {std::string("--global"), std::string("--local")}) {
    ASSERT_EQ(world.git(a, {"config", where, "include.path", included}).exit_code, 0);
    for (const char* what : {"with an include", "by a hint"}) {
      world.commit(a, what);
      ASSERT_EQ(world.push(a, grant).exit_code, 0);
    }
    world.commit(a, "to several");
    main = world.main();
    fence = world.fence();
    add_urls({"config", "--file", included});
    expect_refused();
    write_text(included, "");
    ASSERT_EQ(world.git(a, {"config", where, "--unset-all", "include.path"}).exit_code, 0);
  }
}

}  // namespace
}  // namespace stint::test
