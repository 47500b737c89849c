// Ways around the hook of `stint guard install PATH.git`, and what git itself does in a repository
// that has it.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "guard/git_fence.h"
#include "guard/git_hook.h"
#include "guard/git_probe.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

class GitHookAround : public testing::Test {
 protected:
  void SetUp() override {
    const auto done =
        guard::install_hook({.repository = world.repository(), .branches = {}, .fence = {}});
    ASSERT_TRUE(done) << done.error().message;
    a = world.clone("a");
  }
  Finished server(std::vector<std::string> words) const {
    words.insert(words.begin(), {"--git-dir", world.repository()});
    return world.git(a, std::move(words));
  }
  // An object in the clone: a fence as good as that grant can make one.
  std::string fence_of(const Grant& grant, std::uint64_t seq) const {
    os::SystemRandom random;
    const auto pass = world.pass(grant);
    write_text(world.dir().file("made"), guard::encode({.fence = {.generation = pass.generation,
                                                                  .resource = "r",
                                                                  .token = pass.token,
                                                                  .key = {},
                                                                  .digest = {}},
                                                        .seq = seq,
                                                        .claim = pass.claim->hash(),
                                                        .owner = "o",
                                                        .nonce = random.id_hex()}));
    return std::string(trim(world.git(a, {"hash-object", "-w", world.dir().file("made")}).out));
  }
  // With force, so that nothing but the server decides.
  Finished force(std::vector<std::string> refs) const {
    refs.insert(refs.begin(), {"push", "--atomic", "--force", "origin"});
    return world.git(a, std::move(refs));
  }
  static void refused(const Finished& push, const std::string& why) {
    EXPECT_NE(push.exit_code, 0) << why;
    EXPECT_NE(push.err.find(why), std::string::npos) << push.err;
  }
  // What the hook says of a transaction; its exit code.
  std::optional<int> ask(const std::string& lines) const {
    return run({.argv = {world.repository() + "/hooks/reference-transaction", "prepared"},
                .env = {{"GIT_DIR", world.repository()}},
                .stdin_text = lines,
                .cwd = world.repository()})
        .exit_code;
  }
  // Past the hook; the object must be there.
  void plant(const std::string& ref, const std::string& oid) const {
    const std::string path = cat(world.repository(), "/", ref);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_text(path, cat(oid, "\n"));
  }

  GitWorld world;
  std::string a;
};

// The hook once saw the object that a ref under refs/replace/ shows instead of the one that stands:
// a fence at token 3 went back to 1, and a forced branch looked like one that followed.
// EVIDENCE-OF: G5
TEST_F(GitHookAround, ObjectsAreJudgedThemselvesNotTheirReplacements) {
  const Grant first = world.take("a");
  ASSERT_EQ(world.push(a, first).exit_code, 0);
  const std::string main = world.main();
  const Grant second = world.take("b");
  ASSERT_TRUE(world.seal(second));
  const std::string stood = world.fence();
  const std::string lower = fence_of(first, 0);
  refused(world.git(a, {"push", "origin", cat(lower, ":refs/replace/", stood)}), "may be replaced");

  // One that came around the hook is not looked through either.
  ASSERT_EQ(world.git(a, {"push", "origin", cat(lower, ":refs/tags/lower")}).exit_code, 0);
  plant(cat("refs/replace/", stood), lower);
  const std::string follows = world.commit(a, "late");
  refused(force({cat(follows, ":refs/heads/main"), cat(fence_of(first, 9), ":refs/stint/fence/r")}),
          "stale: token 1");
  EXPECT_EQ(world.fence(), stood);

  // A tip beside the branch, replaced by a commit that follows it.
  ASSERT_EQ(world.git(a, {"push", "origin", cat(follows, ":refs/tags/follows")}).exit_code, 0);
  world.git(a, {"reset", "-q", "--hard", "HEAD~2"});
  const std::string beside = world.commit(a, "instead");
  plant(cat("refs/replace/", beside), follows);
  refused(force({cat(beside, ":refs/heads/main"), cat(fence_of(second, 9), ":refs/stint/fence/r")}),
          "must not be forced");
  EXPECT_EQ(world.main(), main);
  EXPECT_EQ(world.fence(), stood);

  // Whoever finds one may take it away.
  const Finished away = world.git(a, {"push", "origin", cat(":refs/replace/", beside)});
  EXPECT_EQ(away.exit_code, 0) << away.err;
}

// Both come as transactions: packing as a write of what stands, taking the loose copies away as a
// deletion. Both were refused, and with them every `git gc`.
TEST_F(GitHookAround, GitMayPackItsRefsAndNothingIsLostByIt) {
  const Grant first = world.take("a");
  const Grant second = world.take("b");
  world.server_config("receive.denyDeleteCurrent", "ignore");
  std::string main;
  for (const char* upkeep : {"pack-refs", "gc"}) {
    main = main.empty() ? world.head(a) : world.commit(a, upkeep);
    const Finished pushed = world.push(a, second);
    ASSERT_EQ(pushed.exit_code, 0) << pushed.err;
    const std::string stood = world.fence();
    const Finished kept = std::string_view(upkeep) == "gc" ? server({"gc", "--quiet"})
                                                           : server({"pack-refs", "--all"});
    EXPECT_EQ(kept.exit_code, 0) << kept.err;
    for (const char* ref : {"refs/heads/main", "refs/stint/fence/r"})
      EXPECT_FALSE(std::filesystem::exists(cat(world.repository(), "/", ref))) << ref;
    const std::string next = world.commit(a, "not by stint");
    refused(world.git(a, {"push", "origin", "main"}), "is guarded");
    refused(force({"main", cat(fence_of(first, 99), ":refs/stint/fence/r")}), "stale: token 1");
    refused(force({"main", cat(fence_of(second, 0), ":refs/stint/fence/r")}), "has seen this push");
    refused(force({":refs/heads/main"}), "is guarded");
    refused(force({":refs/stint/fence/r"}), "must not be deleted");
    // A fence that stays what it is covers nothing.
    EXPECT_EQ(
        ask(cat(stood, " ", stood, " refs/stint/fence/r\n", main, " ", next, " refs/heads/main\n")),
        1);
    EXPECT_EQ(world.main(), main);
    EXPECT_EQ(world.fence(), stood);
  }
  // Packed and loose at once: still no deletion.
  ASSERT_EQ(world.push(a, second).exit_code, 0);
  ASSERT_EQ(server({"pack-refs", "--all", "--no-prune"}).exit_code, 0);
  refused(force({":refs/heads/main"}), "is guarded");
  refused(force({":refs/stint/fence/r"}), "must not be deleted");
  EXPECT_NE(server({"update-ref", "-d", "refs/stint/fence/r"}).exit_code, 0);
  // Newer gits ask about a deletion only once. Whoever deletes has packed-refs locked.
  const std::string gone = cat(world.main(), " ", std::string(40, '0'), " refs/heads/main\n");
  EXPECT_EQ(ask(gone), 0) << "the loose copy alone";
  write_text(world.repository() + "/packed-refs.lock", "");
  EXPECT_EQ(ask(gone), 1);
  std::filesystem::remove(world.repository() + "/packed-refs.lock");
  EXPECT_EQ(world.main(), world.head(a));
  EXPECT_EQ(world.fence_line("token"), second.token);
}

// What stands at a name is not what stands at a tag that is called like the whole name.
TEST_F(GitHookAround, ATagThatIsCalledLikeABranchIsNotTheBranch) {
  ASSERT_EQ(world.git(a, {"push", "origin", "HEAD:refs/tags/refs/heads/new"}).exit_code, 0);
  refused(server({"update-ref", "refs/heads/new", world.head(a)}), "is guarded");
  EXPECT_EQ(server({"for-each-ref", "refs/heads/new"}).out, "");
}

// An alias was guarded, and who pushed to the branch itself was asked for nothing.
TEST_F(GitHookAround, ABranchThatLeadsToAnotherIsNotGuardedInItsPlace) {
  ASSERT_EQ(server({"symbolic-ref", "refs/heads/alias", "refs/heads/main"}).exit_code, 0);
  const Finished refused_one =
      world.stint()({"guard", "install", world.repository(), "--branch", "alias"});
  EXPECT_EQ(refused_one.exit_code, 2);
  refused(refused_one, "leads to 'refs/heads/main': guard that one");
  EXPECT_EQ(server({"config", "--get-all", "stint.guarded"}).out, "refs/heads/* *\n");
  const Finished good = world.stint()({"guard", "install", world.repository(), "--branch", "main"});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  // Guarded itself, it is not written through the alias either.
  refused(world.git(a, {"push", "origin", "HEAD:refs/heads/alias"}), "is guarded");
}

// A hook that git does not run was told to protect.
TEST_F(GitHookAround, TheCheckTellsWhetherGitRunsIt) {
  const std::string path = world.repository() + "/hooks/reference-transaction";
  const auto told = [&] {
    const auto lines = guard::probe_git(world.target());
    EXPECT_TRUE(lines) << lines.error().message;
    const guard::CheckLine last = lines ? lines->back() : guard::CheckLine{};
    EXPECT_TRUE(last.text.starts_with("hook: ")) << last.text;
    return cat(last.level == guard::CheckLine::Level::Ok ? "ok " : "warn ", last.text);
  };
  const auto expect = [&](const std::string& begin, const std::string& words) {
    const std::string line = told();
    EXPECT_TRUE(line.starts_with(begin)) << line;
    EXPECT_NE(line.find(words), std::string::npos) << line;
    EXPECT_EQ(server({"for-each-ref"}).out.find("refs/replace"), std::string::npos);
  };
  expect("ok", "itself refuses");
  using std::filesystem::perms;
  std::filesystem::permissions(path, perms::owner_read | perms::owner_write);
  expect("warn", "git does not run it");
  const auto again =
      guard::install_hook({.repository = world.repository(), .branches = {}, .fence = {}});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->already);
  expect("ok", "itself refuses");
  // Absolute, and counted from the repository.
  for (const std::string& hooks : {world.dir().file("elsewhere"), std::string("mine")}) {
    world.server_config("core.hooksPath", hooks);
    expect("warn", "core.hooksPath");
    ASSERT_TRUE(
        guard::install_hook({.repository = world.repository(), .branches = {}, .fence = {}}));
    expect("ok", "itself refuses");
    refused(world.git(a, {"push", "origin", "main"}), "is guarded");
  }
  write_text(world.repository() + "/mine/reference-transaction",
             "#!/bin/sh\n# stint-guard-hook 1\nexit 0\n");
  expect("warn", "another version");
}

}  // namespace
}  // namespace stint::test
