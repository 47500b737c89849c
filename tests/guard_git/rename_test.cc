// A server that is held up between the renames of one push (git's file storage): what a newer
// holder can do meanwhile. ADR 0016.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "guard/git_hook.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

class BetweenTheRenames : public testing::Test {
 protected:
  // Pushes from `clone` meet a server that waits before its nth rename.
  void hold_up(const std::string& clone, int nth) {
    const std::string script = world.dir().file("receive-pack");
    write_text(script, cat("#!/bin/sh\nexec strace -f -qq -o /dev/null -e trace=rename -e "
                           "inject=rename:delay_enter=",
                           1000 * kDelay.count(), ":when=", nth, " git-receive-pack \"$@\"\n"));
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    world.git(clone, {"config", "remote.origin.receivepack", script});
  }
  bool locked(const std::string& ref) const {
    return std::filesystem::exists(cat(world.repository(), "/", ref, ".lock"));
  }
  // A blob of the server, and what stands at a ref of it, by git alone.
  std::string blob(const std::string& text) const {
    write_text(world.dir().file("text"), text);
    return std::string(trim(world.git(a, {"hash-object", "-w", world.dir().file("text")}).out));
  }
  Command raw_push(const std::string& clone, const std::string& fence, const std::string& from,
                   std::vector<std::string> words) const {
    std::vector<std::string> all = {
        "git", "push", "-q", "--atomic", cat("--force-with-lease=", fence, ":", from), "origin"};
    all.insert(all.end(), words.begin(), words.end());
    Command out = world.push_command(clone, {}, {});
    out.argv = std::move(all);
    return out;
  }

  static constexpr Millis kDelay{1'500};
  GitWorld world;
  std::string a = world.clone("a");
};

// EVIDENCE-OF: G5
TEST_F(BetweenTheRenames, TheSealOfANewerHolderWaitsUntilTheOlderWriteIsThere) {
  const Grant first = world.take("a");
  ASSERT_EQ(world.push(a, first).exit_code, 0);
  const std::string before = world.fence();
  const std::string late = world.commit(a, "late");
  hold_up(a, 2);
  Child older(world.push_command(a, first));
  ASSERT_TRUE(wait_until([&] { return world.main() == late; }, Millis(20'000))) << older.err();
  ASSERT_TRUE(locked("refs/stint/fence/r"));
  ASSERT_EQ(world.fence(), before);
  const Grant second = world.take("b");
  const auto sealed = world.seal(second);
  ASSERT_TRUE(sealed) << sealed.error().message;
  ASSERT_TRUE(std::holds_alternative<guard::Sealed>(*sealed));
  // From here on nothing of A's may appear.
  const std::string read = world.main();
  EXPECT_EQ(read, late);
  const auto end = older.wait(Millis(60'000));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 0) << older.err();
  EXPECT_EQ(world.main(), read);
  EXPECT_EQ(world.fence_line("token"), second.token);
}

// The same with a fence that stands before the branches: why check_fence_prefix() refuses it.
TEST_F(BetweenTheRenames, AFenceBeforeTheBranchesLetsAnOlderWriteAppearAfterTheSeal) {
  const std::string fence = "refs/fence/r";
  const std::string zero = blob("0");
  const std::string one = blob("1");
  const std::string two = blob("2");
  ASSERT_EQ(run(raw_push(a, fence, "", {cat(zero, ":", fence)})).exit_code, 0);
  const std::string b = world.clone("b");
  world.git(b, {"hash-object", "-w", world.dir().file("text")});
  const std::string late = world.commit(a, "late");
  const std::string old = world.main();
  hold_up(a, 2);
  Child older(raw_push(a, fence, zero, {cat(one, ":", fence), "HEAD:refs/heads/main"}));
  ASSERT_TRUE(wait_until([&] { return world.at(fence) == one; }, Millis(20'000))) << older.err();
  ASSERT_EQ(run(raw_push(b, fence, one, {cat(two, ":", fence)})).exit_code, 0);
  ASSERT_EQ(world.main(), old) << "the server was not held up for long enough";
  const auto end = older.wait(Millis(60'000));
  ASSERT_TRUE(end);
  EXPECT_EQ(world.at(fence), two);
  EXPECT_EQ(world.main(), late);  // the hole
}

// git puts what a symbolic ref leads to in place last, whatever it is called: the same hole. So who
// pushes is refused, by the program and by the hook, and the check tells it.
// EVIDENCE-OF: G5
TEST_F(BetweenTheRenames, ABranchThatLeadsToAnotherIsNotPushedTo) {
  const auto server = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--git-dir", world.repository()});
    return world.git(a, std::move(words));
  };
  ASSERT_EQ(server({"symbolic-ref", "refs/heads/alias", "refs/heads/main"}).exit_code, 0);
  const std::string fence = "refs/stint/fence/r";
  const std::string zero = blob("0");
  const std::string one = blob("1");
  const std::string two = blob("2");
  ASSERT_EQ(run(raw_push(a, fence, "", {cat(zero, ":", fence)})).exit_code, 0);
  const std::string b = world.clone("b");
  world.git(b, {"hash-object", "-w", world.dir().file("text")});
  const std::string old = world.main();
  world.commit(a, "late");
  hold_up(a, 2);
  Child older(raw_push(a, fence, zero, {cat(one, ":", fence), "HEAD:refs/heads/alias"}));
  ASSERT_TRUE(wait_until([&] { return world.at(fence) == one; }, Millis(20'000))) << older.err();
  ASSERT_EQ(run(raw_push(b, fence, one, {cat(two, ":", fence)})).exit_code, 0);
  ASSERT_EQ(world.main(), old) << "the server was not held up for long enough";
  ASSERT_TRUE(older.wait(Millis(60'000)));
  ASSERT_EQ(world.main(), world.head(a)) << "the hole";

  ASSERT_EQ(server({"update-ref", "-d", fence}).exit_code, 0);
  world.git(a, {"config", "--unset", "remote.origin.receivepack"});
  const Grant grant = world.take("a");
  const std::string main = world.main();
  world.commit(a, "more");
  const Finished refused = world.push(a, grant, {"origin", "main:alias"});
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("leads to 'refs/heads/main'"), std::string::npos) << refused.err;
  EXPECT_EQ(world.main(), main);
  EXPECT_EQ(world.fence(), "");
  const auto checked = world.stint()({"guard", "check", cat("git:", world.url(), "#alias")});
  EXPECT_NE(checked.exit_code, 0);
  EXPECT_NE(cat(checked.out, checked.err).find("leads to refs/heads/main"), std::string::npos)
      << checked.out << checked.err;
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
}

TEST_F(BetweenTheRenames, TheHookRefusesABranchThatLeadsToAnother) {
  const Grant grant = world.take("a");
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  ASSERT_TRUE(guard::install_hook({.repository = world.repository(), .branches = {}, .fence = {}}));
  const std::string main = world.main();
  // The hint of the first push stands for the look at it.
  world.commit(a, "more");
  ASSERT_EQ(world.push(a, grant, {"origin", "main:alias"}).exit_code, 0);
  ASSERT_EQ(world
                .git(a, {"--git-dir", world.repository(), "symbolic-ref", "refs/heads/alias",
                         "refs/heads/main"})
                .exit_code,
            0);
  const Finished refused = world.push(a, grant, {"origin", "main:alias"});
  EXPECT_EQ(refused.exit_code, 13) << refused.err;
  EXPECT_NE(refused.err.find("push to refs/heads/main itself"), std::string::npos) << refused.err;
  EXPECT_EQ(world.main(), main);
}

}  // namespace
}  // namespace stint::test
