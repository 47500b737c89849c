// Traps of git that the other files leave out; docs/internals/guard-git.md has them all.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "guard/git_hook.h"
#include "guard/git_probe.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

class GitTrap : public testing::Test {
 protected:
  GitWorld world;
  std::string a = world.clone("a");
};

// Before 2.24 git did not pass `atomic` on over HTTP: the branch would land without its fence. Also
// when an earlier push, by a newer git, left its hint.
// EVIDENCE-OF: G5
TEST_F(GitTrap, AGitThatIsTooOldIsRefusedAlsoAfterAFirstPush) {
  const std::string tools = world.dir().file("tools");
  std::filesystem::create_directories(tools);
  write_text(cat(tools, "/git"),
             "#!/bin/sh\nfor word; do\n  [ \"$word\" != version ] || exec echo 'git version "
             "2.23.4'\n  [ \"$word\" != push ] || touch \"${0%/*}/pushed\"\ndone\nPATH=${PATH#*:}\n"
             "exec git \"$@\"\n");
  std::filesystem::permissions(cat(tools, "/git"), std::filesystem::perms::owner_all);
  const std::string path = cat(tools, ":", std::getenv("PATH"));
  const Grant grant = world.take("a");
  const auto refused = [&](const std::vector<std::string>& words) {
    Command push = world.push_command(a, grant, words);
    push.env.emplace_back("PATH", path);
    const std::string main = world.main();
    const std::string fence = world.fence();
    const Finished done = run(push, Millis(60'000));
    EXPECT_EQ(done.exit_code, 1) << done.err;
    EXPECT_NE(done.err.find("too old for fenced pushes"), std::string::npos) << done.err;
    EXPECT_FALSE(std::filesystem::exists(cat(tools, "/pushed")));
    EXPECT_EQ(world.main(), main);
    EXPECT_EQ(world.fence(), fence);
  };
  refused({"origin", "main"});
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  world.commit(a, "more");
  refused({"origin", "main"});
  // Where the settings cannot be known as a whole.
  write_text(world.dir().file("gitconfig"),
             cat(read_text(world.dir().file("gitconfig")), "[include]\n\tpath = none\n"));
  refused({"origin", "main"});
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  world.commit(a, "again");
  refused({"origin", "main"});
}

// The fallback's zombie: held up inside its push while its successor seals with a commit.
// EVIDENCE-OF: G5
TEST_F(GitTrap, AZombieInsideAPushOfTheFallbackIsRefusedAndSoIsItsRebase) {
  world.server_config("receive.advertiseAtomic", "false");
  const std::string more = ";fallback=seal-commit";
  const std::vector<std::string> words = {"origin", "main", "--fallback", "seal-commit"};
  for (const bool at_server : {false, true}) {
    const Barrier barrier(world.dir().file(at_server ? "at-server" : "at-client"));
    if (at_server) {
      world.server_hook("update", barrier.script());
      std::filesystem::remove(world.dir().file("a/.git/hooks/pre-push"));
    } else {
      world.hook(a, "pre-push", barrier.script());
    }
    const Grant first = world.take("a");
    ASSERT_TRUE(world.seal(first, false, more));
    world.git(a, {"fetch", "-q"});
    world.git(a, {"reset", "-q", "--hard", "origin/main"});
    world.commit(a, "a zombie's");
    barrier.arm();
    Child zombie(world.push_command(a, first, words));
    ASSERT_TRUE(wait_until([&] { return barrier.arrived(); }, Millis(30'000))) << zombie.err();
    const Grant second = world.take("b");
    const auto sealed = world.seal(second, false, more);
    ASSERT_TRUE(sealed) << sealed.error().message;
    const std::string stood = world.main();
    barrier.let_go();
    const auto end = zombie.wait(Millis(60'000));
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 1) << zombie.err();
    EXPECT_EQ(world.main(), stood);
    // What agents do then.
    ASSERT_EQ(world.git(a, {"pull", "-q", "--rebase"}).exit_code, 0);
    const Finished again = world.push(a, first, words);
    EXPECT_EQ(again.exit_code, 13) << again.err;
    EXPECT_EQ(world.main(), stood);
  }
}

// What git would read as force is never taken for a part of a name either: a branch may be called
// so.
TEST_F(GitTrap, APlusIsRefusedWhereverItStands) {
  const Grant grant = world.take("a");
  ASSERT_EQ(world.git(a, {"branch", "+topic"}).exit_code, 0);
  const std::string main = world.main();
  for (const char* ref : {"+main", "+HEAD:main", "+topic:main", "main:+main"}) {
    const Finished refused = world.push(a, grant, {"origin", ref});
    EXPECT_EQ(refused.exit_code, 2) << ref << refused.err;
    EXPECT_NE(refused.err.find("never forced"), std::string::npos) << ref << refused.err;
    EXPECT_EQ(world.main(), main) << ref;
    EXPECT_EQ(world.fence(), "") << ref;
  }
}

// The fallback's zombie that starts its push only after its successor's seal. It stands on its own
// seal and has not seen the newer one; what git sends as the old value is what stands there now, so
// that nothing but the rule against force keeps the newer seal in the branch.
// EVIDENCE-OF: G5
TEST_F(GitTrap, AZombieThatStartsAPushOfTheFallbackAnewTakesNoSealAway) {
  world.server_config("receive.advertiseAtomic", "false");
  const std::string more = ";fallback=seal-commit";
  const std::vector<std::string> words = {"origin", "main", "--fallback", "seal-commit"};
  const Grant first = world.take("a");
  ASSERT_TRUE(world.seal(first, false, more));
  world.git(a, {"fetch", "-q"});
  world.git(a, {"reset", "-q", "--hard", "origin/main"});
  world.commit(a, "a zombie's");
  const Grant second = world.take("b");
  const auto sealed = world.seal(second, false, more);
  ASSERT_TRUE(sealed) << sealed.error().message;
  const std::string stood = world.main();
  const Finished late = world.push(a, first, words);
  EXPECT_EQ(late.exit_code, 1) << late.err;
  EXPECT_NE(late.err.find("conflict"), std::string::npos) << late.err;
  EXPECT_EQ(world.main(), stood);
}

// A server whose settings can be seen, and what becomes of a fence there in a power cut.
TEST_F(GitTrap, TheCheckWarnsWhereAPowerCutMayRollAFenceBack) {
  const auto told = [&] {
    const auto lines = guard::probe_git(world.target());
    EXPECT_TRUE(lines) << lines.error().message;
    for (const guard::CheckLine& line : *lines) {
      if (line.text.starts_with("power cut: ")) return line.level == guard::CheckLine::Level::Ok;
    }
    ADD_FAILURE() << "nothing is said of it";
    return false;
  };
  EXPECT_FALSE(told()) << "git's default";
  struct Value {
    const char* fsync;
    bool good;
  };
  constexpr Value kValues[] = {
      {"committed,loose-object", false}, {"committed,reference", true}, {"all", true},
      {"all,-reference", false},         {"reference,none", false},     {"none,reference", true}};
  for (const Value& value : kValues) {
    world.server_config("core.fsync", value.fsync);
    EXPECT_EQ(told(), value.good) << value.fsync;
  }
  world.server_config("core.fsyncMethod", "writeout-only");
  EXPECT_FALSE(told());
  world.server_config("core.fsyncMethod", "fsync");
  world.server_config("core.fsync", "all,-reference");
  ASSERT_TRUE(guard::install_hook({.repository = world.repository(), .branches = {}, .fence = {}}));
  EXPECT_TRUE(told()) << "guard install adds it";
}

// A server with files of its own (updateInstead) writes them before it compares anything: a late
// push is refused, and what it brought stays. Nobody can help that but who runs the server.
TEST_F(GitTrap, TheCheckWarnsWhereALatePushWouldWriteTheServersFiles) {
  const std::string tree = world.dir().file("tree");
  const std::string fence = "refs/stint/fence/r";
  const auto git = [&](const std::string& clone, std::vector<std::string> words) {
    const Finished done = world.git(clone, std::move(words));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return std::string(trim(done.out));
  };
  const auto blob = [&](const std::string& clone, const std::string& text) {
    write_text(world.dir().file("text"), text);
    return git(clone, {"hash-object", "-w", world.dir().file("text")});
  };
  const auto warned = [&](const std::string& target) {
    const auto lines = guard::probe_git(target);
    EXPECT_TRUE(lines) << lines.error().message;
    return lines && std::ranges::any_of(*lines, [](const guard::CheckLine& line) {
             return line.level == guard::CheckLine::Level::Warn &&
                    line.text.starts_with("work tree: ");
           });
  };
  git(a, {"clone", "-q", world.repository(), tree});
  git("tree", {"config", "receive.denyCurrentBranch", "updateInstead"});
  git(a, {"remote", "add", "live", tree});
  const std::string before = blob(a, "0");
  git(a, {"push", "-q", "live", cat(before, ":", fence)});
  write_text(world.dir().file("a/page"), "late");
  git(a, {"add", "page"});
  world.commit(a, "late");
  // A newer holder seals when the older push has looked at the fence.
  world.hook(a, "pre-push",
             cat("git --git-dir ", tree, "/.git update-ref ", fence, " ", blob("tree", "2")));
  const Finished late =
      world.git(a, {"push", "--atomic", cat("--force-with-lease=", fence, ":", before), "live",
                    cat(blob(a, "1"), ":", fence), "HEAD:main"});
  EXPECT_NE(late.exit_code, 0);
  EXPECT_NE(git("tree", {"rev-parse", "main"}), world.head(a));
  EXPECT_TRUE(std::filesystem::exists(cat(tree, "/page"))) << "then there is no need to warn";
  EXPECT_TRUE(warned(cat("git:", tree, "#main")));
  EXPECT_TRUE(warned(cat("git:", tree, "/.git#main")));
  git("tree", {"config", "receive.denyCurrentBranch", "refuse"});
  EXPECT_FALSE(warned(cat("git:", tree, "#main")));
  EXPECT_FALSE(warned(world.target()));
}

}  // namespace
}  // namespace stint::test
