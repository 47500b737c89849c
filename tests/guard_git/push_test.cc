// What `stint push` does in each state of fence, branch and server; bad input changes nothing.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "guard/git_fence.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

using testing::Test;

class GitPushTest : public Test {
 protected:
  // The server as it stands: to see that nothing was changed.
  std::string refs() const {
    return world.git("a", {"--git-dir", world.repository(), "for-each-ref"}).out;
  }
  void expect_untouched(const Finished& done, int code, const std::string& words) {
    EXPECT_EQ(done.exit_code, code) << done.err;
    EXPECT_NE(done.err.find(words), std::string::npos) << done.err;
    EXPECT_EQ(refs(), before);
  }
  // Puts any text where the fence is, as somebody with git alone could.
  void plant(const std::string& text) {
    write_text(world.dir().file("planted"), text);
    const std::string oid(trim(world
                                   .git("a", {"--git-dir", world.repository(), "hash-object", "-w",
                                              world.dir().file("planted")})
                                   .out));
    world.git("a", {"--git-dir", world.repository(), "update-ref", "refs/stint/fence/r", oid});
    before = refs();
  }
  std::string fence_text(const Grant& grant, std::uint64_t token, const std::string& resource) {
    const auto pass = world.pass(grant);
    return guard::encode({.fence = {.generation = pass.generation,
                                    .resource = resource,
                                    .token = Token(token),
                                    .key = {},
                                    .digest = {}},
                          .seq = 0,
                          .claim = pass.claim->hash(),
                          .owner = "x",
                          .nonce = std::string(32, 'a')});
  }

  GitWorld world;
  std::string a = world.clone("a");
  std::string before;
};

TEST_F(GitPushTest, SealsFirstAndThenWritesWithAFenceUnlikeTheOneBefore) {
  const Grant grant = world.take("a");
  const Finished first = world.push(a, grant, {"origin", "main", "--json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(json_field(first.out, "sealed"), "true");
  EXPECT_EQ(world.main(), world.head(a));
  EXPECT_EQ(world.fence_line("seq"), "1");  // the seal was a push of its own
  EXPECT_EQ(world.fence_line("token"), grant.token);
  const std::string fence = world.fence();
  // Also when the branch has nothing new: the fence must move, or nothing would be compared.
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  EXPECT_NE(world.fence(), fence);
  EXPECT_EQ(world.fence_line("seq"), "2");
  const auto remembered = world.fences().sealed(ResourceName::parse("r").value());
  ASSERT_TRUE(remembered);
  EXPECT_EQ(*remembered, std::vector<std::string>{cat("git:", world.url(), "#refs/heads/main")});
}

TEST_F(GitPushTest, GoesWhereGitPushWouldGo) {
  const Grant grant = world.take("a");
  ASSERT_EQ(world.push(a, grant, {}).exit_code, 0);
  EXPECT_EQ(world.main(), world.head(a));
  world.git(a, {"checkout", "-q", "-b", "side"});
  const std::string side = world.commit(a, "on a side");
  ASSERT_EQ(world.push(a, grant, {"origin"}).exit_code, 0);
  EXPECT_EQ(world.at("refs/heads/side"), side);
  ASSERT_EQ(world.push(a, grant, {"origin", "HEAD:other"}).exit_code, 0);
  EXPECT_EQ(world.at("refs/heads/other"), side);
}

TEST_F(GitPushTest, AZombieThatStartsAnewIsRefused) {
  const Grant first = world.take("a");
  ASSERT_EQ(world.push(a, first).exit_code, 0);
  const Grant second = world.take("b");
  ASSERT_TRUE(world.seal(second));
  world.commit(a, "late");
  before = refs();
  const Finished late = world.push(a, first);
  expect_untouched(late, 13, "token 2");
  EXPECT_NE(late.err.find("acquire the lease anew"), std::string::npos) << late.err;
  const Finished json = world.push(a, first, {"origin", "main", "--json"});
  EXPECT_EQ(json_field(json.err, "code"), "stale");
  EXPECT_EQ(json_field(json.err, "owner"), "b");
}

TEST_F(GitPushTest, ASupersededTokenIsRefusedAlsoWhereNobodyHasSealedYet) {
  const Grant first = world.take("a");
  world.take("b");
  before = refs();
  expect_untouched(world.push(a, first), 13, "newer token");
}

TEST_F(GitPushTest, ABranchThatMovedIsAConflictAndTheFenceStands) {
  const Grant grant = world.take("a");
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  const std::string b = world.clone("b");
  world.git(b, {"push", "-q", "origin", "main"});
  world.commit(a, "does not follow");
  before = refs();
  expect_untouched(world.push(a, grant), 1, "Fetch and rebase");
  world.git(a, {"pull", "-q", "--rebase"});
  EXPECT_EQ(world.push(a, grant).exit_code, 0);
}

TEST_F(GitPushTest, TheUsersHookRunsOnceAndMayRefuse) {
  const Grant grant = world.take("a");
  const std::string log = world.dir().file("hook.log");
  world.hook(a, "pre-push", cat("cat >>", log));
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  EXPECT_EQ(count_lines(read_text(log), "refs/heads/main"), 1) << read_text(log);
  world.hook(a, "pre-push", "echo not today >&2; exit 1");
  const std::string main = world.main();
  world.commit(a, "more");
  const Finished refused = world.push(a, grant);
  EXPECT_EQ(refused.exit_code, 1) << refused.err;
  EXPECT_NE(refused.err.find("not today"), std::string::npos) << refused.err;
  EXPECT_EQ(world.main(), main);
}

TEST_F(GitPushTest, WhatIsConfiguredForPushesByHandDoesNotHappen) {
  const Grant grant = world.take("a");
  world.git(a, {"tag", "-a", "v1", "-m", "a tag that would follow"});
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"push.followTags", "true"},
           {"push.pushOption", "the=server takes none"},
           {"push.default", "matching"},
           {"push.gpgSign", "true"},
           {"push.recurseSubmodules", "only"},
           {"remote.origin.push", "+HEAD:refs/heads/other"}}) {
    ASSERT_EQ(world.git(a, {"config", key, value}).exit_code, 0) << key;
    const std::string mine = world.commit(a, key);
    const Finished pushed = world.push(a, grant);
    EXPECT_EQ(pushed.exit_code, 0) << key << ": " << pushed.err;
    EXPECT_EQ(world.main(), mine) << key;
  }
  EXPECT_EQ(world.at("refs/tags/v1"), "");
  EXPECT_EQ(world.at("refs/heads/other"), "");
  // A mirror is forced.
  world.git(a, {"config", "remote.origin.mirror", "true"});
  world.commit(a, "to a mirror");
  before = refs();
  expect_untouched(world.push(a, grant), 2, "configured as a mirror");
}

TEST_F(GitPushTest, FencesThatAreNotWhatTheyShouldBeAreRefused) {
  const Grant grant = world.take("a");
  plant("garbage\n");
  expect_untouched(world.push(a, grant), 1, "unreadable");
  plant(fence_text(grant, 9, "r"));
  expect_untouched(world.push(a, grant), 13, "the store was restored");
  plant(fence_text(grant, 1, "another"));
  expect_untouched(world.push(a, grant), 13, "another");
  // Our token, and somebody else's claim.
  Grant other = grant;
  other.claim = std::string(32, '7');
  plant(fence_text(other, 1, "r"));
  expect_untouched(world.push(a, grant), 1, "another claim");
  EXPECT_FALSE(world.seal(grant));
}

TEST_F(GitPushTest, AnOperatorAdoptsAFenceOfAnotherLifeOrATornOne) {
  const Grant grant = world.take("a");
  const auto adopt = [&] {
    const guard::SealRequest request{.pass = world.pass(grant),
                                     .by_order = false,
                                     .adopt = guard::SealRequest::Adoption{"moved", "test"}};
    return guard::seal_git(world.target(), request, &world.fences());
  };
  Grant foreign = grant;
  foreign.generation = std::string(32, '7');
  for (const std::string& text : {fence_text(foreign, 99, "r"), std::string("garbage\n")}) {
    plant(text);
    const Finished refused = world.push(a, grant);
    EXPECT_NE(refused.exit_code, 0);
    EXPECT_EQ(refs(), before) << refused.err;
    const auto plain = world.seal(grant);
    EXPECT_TRUE(!plain || std::holds_alternative<guard::Refused>(*plain));
    EXPECT_EQ(refs(), before);
    const auto adopted = adopt();
    ASSERT_TRUE(adopted) << adopted.error().message;
    ASSERT_TRUE(std::holds_alternative<guard::Sealed>(*adopted));
    EXPECT_EQ(world.fence_line("token"), grant.token);
    world.commit(a, "more");
    const Finished pushed = world.push(a, grant);
    EXPECT_EQ(pushed.exit_code, 0) << pushed.err;
  }
}

TEST_F(GitPushTest, TokensThatWereNeverIssuedOrGrantedAreRefused) {
  Grant grant = world.take("a");
  before = refs();
  const std::string real = grant.token;
  grant.token = "77";
  expect_untouched(world.push(a, grant), 13, "never issued");
  ASSERT_EQ(world.stint()({"revoke", "r", "--token", real, "--why", "test"}).exit_code, 0);
  grant.token = "2";
  expect_untouched(world.push(a, grant), 13, "granted");
  grant.token = "";
  expect_untouched(world.push(a, grant), 13, "no token");
}

// EVIDENCE-OF: G5
TEST_F(GitPushTest, TheTokenOfARevocationIsRefusedAlsoWhereItSealed) {
  Grant grant = world.take("a");
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  const Finished revoked = world.stint()({"revoke", "r", "--token", grant.token, "--why", "test"});
  ASSERT_EQ(revoked.exit_code, 0) << revoked.err;
  before = refs();
  world.commit(a, "more");
  grant.token = "2";
  expect_untouched(world.push(a, grant), 13, "granted");
  const Grant next = world.take("b");
  EXPECT_EQ(world.push(a, next).exit_code, 0);
}

TEST_F(GitPushTest, AMissingFenceOfASealedTargetIsMadeAnewByTheLiveHolderAndAFaultToAnybodyElse) {
  const Grant grant = world.take("a");
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  const auto lose_it = [&] {
    world.git(a, {"--git-dir", world.repository(), "update-ref", "-d", "refs/stint/fence/r"});
    world.commit(a, "more");
    before = refs();
  };
  for (const bool hinted : {true, false}) {
    lose_it();
    if (!hinted) std::filesystem::remove_all(world.dir().file("a/.git/stint"));
    const Finished done = world.push(a, grant);
    EXPECT_EQ(done.exit_code, 0) << hinted << done.err;
    EXPECT_NE(refs().find("refs/stint/fence/r"), std::string::npos);
  }
  lose_it();
  ASSERT_EQ(world.stint()({"release", "r", "--token", grant.token}).exit_code, 0);
  expect_untouched(world.push(a, grant), 1, "its fence is missing");
  ASSERT_TRUE(world.seal(grant));
  EXPECT_EQ(world.push(a, grant).exit_code, 0);
}

TEST_F(GitPushTest, AHintThatLiesChangesNothing) {
  const Grant first = world.take("a");
  ASSERT_EQ(world.push(a, first).exit_code, 0);
  const Grant second = world.take("b");
  ASSERT_TRUE(world.seal(second));
  // The fence of the successor, said to be ours.
  std::string text =
      world.git(a, {"--git-dir", world.repository(), "cat-file", "-p", "refs/stint/fence/r"}).out;
  text.replace(text.find("token 2"), 7, "token 1");
  for (const auto& entry : std::filesystem::directory_iterator(world.dir().file("a/.git/stint")))
    write_text(entry.path(), cat(split(read_text(entry.path()), '\n')[0], "\n", text));
  before = refs();
  expect_untouched(world.push(a, first), 13, "token 2");
}

TEST_F(GitPushTest, WhatASealByOrderLeftIsTakenUp) {
  const Grant first = world.take("a");
  ASSERT_EQ(world.push(a, first).exit_code, 0);
  Grant next = world.take("b");
  ASSERT_TRUE(world.seal(next, true));
  EXPECT_EQ(world.fence_line("claim"), "-");
  EXPECT_EQ(world.push(a, first).exit_code, 13);
  const std::string b = world.clone("b");
  EXPECT_EQ(world.push(b, next).exit_code, 0);
  EXPECT_EQ(world.fence_line("claim"), world.pass(next).claim->hash().hex());
}

TEST_F(GitPushTest, ModeOnceAcceptsOneWriteAndItsRepeat) {
  const Grant grant = world.take("a");
  ASSERT_EQ(world.push(a, grant, {"origin", "main", "--mode", "once"}).exit_code, 0);
  const Finished again = world.push(a, grant, {"origin", "main", "--mode", "once", "--json"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json_field(again.out, "already"), "true");
  world.commit(a, "another");
  before = refs();
  expect_untouched(world.push(a, grant, {"origin", "main", "--mode", "once"}), 13, "one write");
}

TEST_F(GitPushTest, FencesMayBeAChainOfCommitsOnABranch) {
  const Grant first = world.take("a");
  const std::vector<std::string> words = {"origin", "main", "--fence-ref", "refs/heads/zz-fence/"};
  ASSERT_EQ(world.push(a, first, words).exit_code, 0);
  world.commit(a, "more");
  ASSERT_EQ(world.push(a, first, words).exit_code, 0);
  EXPECT_EQ(world.fence_line("token", "refs/heads/zz-fence/r"), "1");
  const auto chain = world.git(
      a, {"--git-dir", world.repository(), "rev-list", "--count", "refs/heads/zz-fence/r"});
  EXPECT_EQ(trim(chain.out), "3");  // the seal and two pushes
  const Grant second = world.take("b");
  const auto sealed = world.seal(second, false, ";fence=refs/heads/zz-fence/");
  ASSERT_TRUE(sealed) << sealed.error().message;
  world.commit(a, "late");
  before = refs();
  expect_untouched(world.push(a, first, words), 13, "token 2");
}

TEST_F(GitPushTest, BadWordsAndUnreachableServersChangeNothing) {
  const Grant grant = world.take("a");
  before = refs();
  expect_untouched(world.push(a, grant, {"origin", "+main"}), 2, "never forced");
  expect_untouched(world.push(a, grant, {"origin", ":main"}), 2, "delete");
  expect_untouched(world.push(a, grant, {"origin", "main", "--fence-ref", "refs/fence/"}), 2,
                   "order");
  expect_untouched(world.push(a, grant, {"nowhere", "main"}), 2, "no remote");
  expect_untouched(world.push(a, grant, {"--upload-pack=x", "main"}), 2, "");
  world.git(a, {"remote", "add", "gone", world.dir().file("gone.git")});
  expect_untouched(world.push(a, grant, {"gone", "main"}), 69, "");
  world.git(a, {"remote", "set-url", "--add", "--push", "origin", world.repository()});
  world.git(a, {"remote", "set-url", "--add", "--push", "origin", world.dir().file("x.git")});
  expect_untouched(world.push(a, grant), 2, "several push URLs");
}

TEST_F(GitPushTest, AServerThatCannotPushAtomicallyIsRefused) {
  const Grant grant = world.take("a");
  world.server_config("receive.advertiseAtomic", "false");
  before = refs();
  expect_untouched(world.push(a, grant), 69, "atomic");
}

// facts A4: the usual loop of an agent carries its commit over the successor's seal.
TEST_F(GitPushTest, TheFallbackRefusesToBeRebasedOverAHigherSeal) {
  world.server_config("receive.advertiseAtomic", "false");
  const std::vector<std::string> words = {"origin", "main", "--fallback", "seal-commit"};
  const Grant first = world.take("a");
  EXPECT_EQ(world.push(a, first, words).exit_code, 1);  // sealed now; our work is beside the seal
  world.git(a, {"pull", "-q", "--rebase"});
  const Finished pushed = world.push(a, first, words);
  ASSERT_EQ(pushed.exit_code, 0) << pushed.err;
  EXPECT_EQ(world.main(), world.head(a));
  const Grant second = world.take("b");
  ASSERT_TRUE(world.seal(second, false, ";fallback=seal-commit"));
  world.commit(a, "late");
  before = refs();
  expect_untouched(world.push(a, first, words), 1, "Fetch and rebase");
  world.git(a, {"pull", "-q", "--rebase"});
  expect_untouched(world.push(a, first, words), 13, "newer seal");
}

TEST_F(GitPushTest, ALockOfAnotherPushIsWaitedFor) {
  const Grant grant = world.take("a");
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  const std::string lock = world.repository() + "/refs/stint/fence/r.lock";
  world.commit(a, "more");
  const std::string tries = world.dir().file("tries");
  world.server_hook("pre-receive", cat("echo one >>", tries));
  write_text(lock, "");
  {
    Child pushing(world.push_command(a, grant));
    // A second try: the first has met the lock.
    ASSERT_TRUE(wait_until([&] { return count_lines(read_text(tries)) > 1; }, Millis(30'000)))
        << pushing.err();
    std::filesystem::remove(lock);
    const auto end = pushing.wait(Millis(60'000));
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 0) << pushing.err();
  }
  EXPECT_EQ(world.main(), world.head(a));
}

TEST_F(GitPushTest, DryRunDecidesAndPushesNothing) {
  const Grant first = world.take("a");
  before = refs();
  expect_untouched(world.push(a, first, {"origin", "main", "--dry-run"}), 0, "would push");
  const Grant second = world.take("b");
  ASSERT_TRUE(world.seal(second));
  before = refs();
  expect_untouched(world.push(a, first, {"origin", "main", "--dry-run"}), 13, "token 2");
}

// What the program reads and writes in the repository itself is left to git in all but the
// simplest.
TEST_F(GitPushTest, RepositoriesOfEveryShapeArePushedFrom) {
  const Grant grant = world.take("a");
  const auto pushes = [&](const std::string& from, const std::string& ref,
                          const std::string& what) {
    const Finished done = world.push(from, grant, {"origin", ref});
    EXPECT_EQ(done.exit_code, 0) << what << ": " << done.err;
    EXPECT_EQ(world.main(), world.head(from)) << what;
  };
  pushes(a, "main", "plain");
  const Finished checked = world.git(a, {"fsck", "--strict"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(world.git(a, {"cat-file", "-t", world.fence()}).out, "blob\n");
  world.commit(a, "1");
  world.git(a, {"pack-refs", "--all"});
  pushes(a, "main", "packed");
  world.commit(a, "2");
  std::filesystem::create_directories(world.dir().file("a/deep/er"));
  pushes("a/deep/er", "HEAD:main", "from within");
  world.git(a, {"checkout", "-q", "--detach"});
  world.commit(a, "3");
  pushes(a, "HEAD:main", "detached");
  world.git(a, {"worktree", "add", "-q", world.dir().file("tree"), "HEAD"});
  world.commit("tree", "4");
  pushes("tree", "HEAD:main", "a worktree");
  world.commit("tree", "5");
  Command elsewhere = world.push_command("tree", grant, {"origin", "HEAD:main"});
  elsewhere.cwd = world.dir().path();
  elsewhere.env.emplace_back("GIT_DIR", world.dir().file("tree/.git"));
  EXPECT_EQ(run(elsewhere, Millis(60'000)).exit_code, 0);
  EXPECT_EQ(world.main(), world.head("tree"));
}

TEST_F(GitPushTest, RepositoriesWithLongerNamesArePushedFromToo) {
  const std::string server = world.dir().file("srv/long.git");
  ASSERT_EQ(world.git(a, {"init", "-q", "--bare", "--object-format=sha256", server}).exit_code, 0);
  ASSERT_EQ(
      world.git(a, {"init", "-q", "--object-format=sha256", world.dir().file("long")}).exit_code,
      0);
  world.git("long", {"remote", "add", "origin", server});
  world.commit("long", "1");
  const Grant grant = world.take("a");
  for (int i = 0; i < 2; ++i) {
    const Finished done = world.push("long", grant);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const auto there = world.git("long", {"ls-remote", server, "refs/heads/main"});
    EXPECT_EQ(there.out.substr(0, 64), world.head("long"));
    world.commit("long", "next");
  }
}

TEST_F(GitPushTest, RequireLiveRefusesALeaseThatRanOut) {
  const Grant grant = world.take("a");
  const std::vector<std::string> words = {"origin", "main", "--require-live"};
  ASSERT_EQ(world.push(a, grant, words).exit_code, 0);
  Command release = world.push_command(a, grant);
  release.argv = world.stint().command({"release", "r", "--token", grant.token}).argv;
  const Finished released = run(release);
  ASSERT_EQ(released.exit_code, 0) << released.err;
  world.commit(a, "late");
  before = refs();
  expect_untouched(world.push(a, grant, words), 13, "live");
  // The fence is still ours: without the option the push is as good as before.
  EXPECT_EQ(world.push(a, grant).exit_code, 0);
}

TEST_F(GitPushTest, WarnLetsThroughWhatItWouldRefuseAndSaysSo) {
  const Grant first = world.take("a");
  ASSERT_EQ(world.push(a, first).exit_code, 0);
  ASSERT_TRUE(world.seal(world.take("b")));
  const std::string late = world.commit(a, "late");
  const std::string fence = world.fence();
  Command warned = world.push_command(a, first);
  warned.env.emplace_back("STINT_GUARD", "warn");
  const Finished done = run(warned, Millis(60'000));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("token 2"), std::string::npos) << done.err;
  EXPECT_EQ(world.main(), late);
  EXPECT_EQ(world.fence(), fence);
}

// The older seal is under way when the newer one gets there: before or after the server has told it
// which fence stands.
TEST_F(GitPushTest, ASealFromAnOldValueIsRefused) {
  const Barrier barrier(world.dir().file("barrier"));
  const std::string script = world.dir().file("receive-pack");
  write_text(script, cat("#!/bin/sh\n(", barrier.script(), ")\nexec git-receive-pack \"$@\"\n"));
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  for (const bool told : {false, true}) {
    if (told) {
      world.git(a, {"config", "--unset", "remote.origin.receivepack"});
      world.server_hook("update", barrier.script());
    } else {
      world.git(a, {"config", "remote.origin.receivepack", script});
    }
    const Grant first = world.take("a");
    barrier.arm();
    const std::string main = world.main();
    Child older(world.push_command(a, first));
    ASSERT_TRUE(wait_until([&] { return barrier.arrived(); }, Millis(30'000))) << older.err();
    const Grant second = world.take("b");
    ASSERT_TRUE(world.seal(second));
    const std::string fence = world.fence();
    barrier.let_go();
    const auto end = older.wait(Millis(60'000));
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 13) << older.err();
    EXPECT_EQ(world.fence(), fence);
    EXPECT_EQ(world.main(), main);
  }
}

TEST_F(GitPushTest, AFenceThatWentBackIsAFault) {
  const Grant first = world.take("a");
  ASSERT_EQ(world.push(a, first).exit_code, 0);
  const std::string lower = world.fence();
  const Grant second = world.take("b");
  ASSERT_EQ(world.push(a, second).exit_code, 0);
  world.git(a, {"--git-dir", world.repository(), "update-ref", "refs/stint/fence/r", lower});
  world.commit(a, "more");
  before = refs();
  expect_untouched(world.push(a, second), 1, "went back");
}

}  // namespace
}  // namespace stint::test
