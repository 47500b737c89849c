// What a push that did not land is told as, and when.
#include <gtest/gtest.h>

#include "base/text.h"
#include "guard/git_remote.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

void expect_words(const Finished& push, const std::string& words, const std::string& not_words) {
  EXPECT_NE(push.err.find(words), std::string::npos) << push.err;
  EXPECT_EQ(push.err.find(not_words), std::string::npos) << push.err;
}

TEST(GitTold, TheUsersHookIsNoLostAnswer) {
  GitWorld world;
  const std::string a = world.clone("a");
  const std::string main = world.main();
  world.hook(a, "pre-push", "echo not today >&2; exit 1");
  const Grant grant = world.take("a");
  for (int i = 0; i < 2; ++i) {
    const Finished refused = world.push(a, grant);
    EXPECT_EQ(refused.exit_code, 1);
    expect_words(refused, "your pre-push hook refused it", "got no answer");
    expect_words(refused, "The branch was not changed", "Nothing was changed");
    EXPECT_EQ(world.main(), main);
  }
  world.hook(a, "pre-push", "exit 0");
  EXPECT_EQ(world.push(a, grant).exit_code, 0);
}

// Who may read and not push: over git:// that was "no answer" (14), after all tries.
TEST(GitTold, AServerThatTakesNoPushesIsNoLostAnswer) {
  for (const Transport transport : {Transport::Daemon, Transport::Http}) {
    SCOPED_TRACE(word(transport));
    GitWorld world(transport);
    const std::string a = world.clone("a");
    const std::string main = world.main();
    world.server_config("http.receivepack", "false");
    // The daemon knows this service too, and does not offer it.
    if (transport == Transport::Daemon)
      world.git(a, {"config", "remote.origin.receivepack", "git-upload-archive"});
    const Finished denied = world.push(a, world.take("a"));
    EXPECT_EQ(denied.exit_code, 69) << denied.err;
    expect_words(denied, transport == Transport::Daemon ? "access denied" : "403", "no answer");
    EXPECT_EQ(world.main(), main);
    EXPECT_EQ(world.fence(), "");
  }
}

TEST(GitTold, WhereGitSaysMoreItIsNotTheHook) {
  const std::string gave_up = "error: failed to push some refs to 'u'\n";
  EXPECT_TRUE(guard::only_git_gave_up("not today\n" + gave_up));
  EXPECT_FALSE(guard::only_git_gave_up(""));
  EXPECT_FALSE(guard::only_git_gave_up("not today\n"));
  EXPECT_FALSE(guard::only_git_gave_up("fatal: the remote end hung up unexpectedly\n" + gave_up));
  EXPECT_FALSE(guard::only_git_gave_up("send-pack: unexpected disconnect\n" + gave_up));
  EXPECT_FALSE(guard::only_git_gave_up("error: RPC failed; curl 56\n" + gave_up));
}

TEST(GitTold, APushThatCannotBeSignedWasNotSent) {
  std::string why;
  EXPECT_EQ(guard::fate_of_push(
                128, {}, "fatal: the receiving end does not support --signed push\n", "f", &why),
            guard::PushFate::Unreached);
}

TEST(GitTold, WhatTheHookOnTheServerSays) {
  EXPECT_EQ(guard::words_of_hook("remote: stint: refused: refs/heads/x is guarded   \n"),
            "refs/heads/x is guarded");
  EXPECT_EQ(guard::words_of_hook("fatal: x\nstint: refused: stale: token 1\n"), "stale: token 1");
  EXPECT_EQ(guard::words_of_hook("he said stint: refused: x\n"), "");
}

// A seal in the history does not know a second write of its token from the first.
TEST(GitTold, TheFallbackDoesNotTakeModeOnce) {
  GitWorld world;
  const std::string a = world.clone("a");
  const std::string main = world.main();
  const Finished refused = world.push(
      a, world.take("a"), {"origin", "main", "--fallback", "seal-commit", "--mode", "once"});
  EXPECT_EQ(refused.exit_code, 2);
  expect_words(refused, "--mode once cannot be kept with --fallback seal-commit", "sealed");
  EXPECT_EQ(world.main(), main);
}

TEST(GitTold, ASealThatStandsIsNotNothing) {
  GitWorld world;
  const std::string a = world.clone("a");
  world.server_hook("update", "case $1 in refs/heads/*) echo closed >&2; exit 1 ;; esac; exit 0");
  const Grant grant = world.take("a");
  const Finished first = world.push(a, grant);
  EXPECT_EQ(first.exit_code, 1);
  expect_words(first, "The branch was not changed; the fence was sealed", "Nothing was changed");
  EXPECT_EQ(world.fence_line("token"), grant.token);
  const Finished second = world.push(a, grant);
  EXPECT_EQ(second.exit_code, 1);
  expect_words(second, "Nothing was changed", "was sealed");
}

// Each try of the seal had a minute of its own, whatever --timeout said.
TEST(GitTold, AServerThatHangsIsGivenUpInTheTimeGiven) {
  GitWorld world;
  const std::string a = world.clone("a");
  const std::string go = world.dir().file("go");
  world.server_hook("pre-receive", cat("n=0; while [ ! -e ", go,
                                       " ] && [ $n -lt 1200 ]; do sleep 0.1; n=$((n+1)); done"));
  const Grant grant = world.take("a");
  // Far less than one try of a minute, far more than the time that was given.
  const Finished given_up =
      run(world.push_command(a, grant, {"origin", "main", "--timeout", "3s"}), Millis(45'000));
  write_text(go, "");
  EXPECT_FALSE(given_up.timed_out);
  // On a machine that is too busy even the first question may take so long.
  EXPECT_TRUE(given_up.exit_code == 14 || given_up.exit_code == 69) << given_up.err;
}

}  // namespace
}  // namespace stint::test
