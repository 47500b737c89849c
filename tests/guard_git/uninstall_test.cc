// After `guard uninstall` a repository is as it was, byte for byte, but for what the guide names:
// the fences, and the objects of what was pushed.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/text.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

class GitUninstall : public testing::Test {
 protected:
  // Every file with its content, every folder, with modes.
  std::map<std::string, std::string> everything() const {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(world.repository())) {
      const std::string name = fs::relative(entry.path(), world.repository());
      if (name.starts_with("objects/") || name.starts_with("refs/stint")) continue;
      const auto mode = static_cast<unsigned>(entry.status().permissions());
      out[name] = cat(mode, " ", entry.is_regular_file() ? read_text(entry.path()) : "");
    }
    return out;
  }
  Finished guard(std::vector<std::string> words) {
    Command command = world.push_command(a, grant, {});
    command.argv.pop_back();  // "push"
    command.argv.push_back("guard");
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    command.argv.push_back(world.repository());
    return run(command, Millis(60'000));
  }
  void play() {
    const auto before = everything();
    const std::string main = world.main();
    const Finished installed =
        guard({"install", "--resource", "r", "--branch", "main", "--only-git"});
    ASSERT_EQ(installed.exit_code, 0) << installed.err;
    world.commit(a, "pushed under the guard");
    const Finished pushed = world.push(a, grant);
    ASSERT_EQ(pushed.exit_code, 0) << pushed.err;
    ASSERT_NE(everything(), before);
    const Finished removed = guard({"uninstall"});
    ASSERT_EQ(removed.exit_code, 0) << removed.err;
    world.git(a, {"--git-dir", world.repository(), "update-ref", "refs/heads/main", main});
    for (const auto& [name, content] : everything()) {
      const auto found = before.find(name);
      EXPECT_EQ(found == before.end() ? "(it was not there)" : found->second, content) << name;
    }
    EXPECT_EQ(everything().size(), before.size());
  }

  GitWorld world;
  std::string a = world.clone("a");
  Grant grant = world.take("a");
};

TEST_F(GitUninstall, LeavesARepositoryAsItWas) { play(); }

TEST_F(GitUninstall, LeavesNoFolderForHooksWhereThereWasNone) {
  fs::remove_all(cat(world.repository(), "/hooks"));
  play();
}

TEST_F(GitUninstall, PutsBackTheHooksAndTheSettingsThatWereThere) {
  world.server_hook("pre-receive", "exit 0");
  world.server_hook("reference-transaction", "exit 0");
  world.server_config("core.fsync", "committed");
  world.server_config("stint.other", "mine");
  play();
  const Finished again = guard({"uninstall"});
  EXPECT_EQ(again.exit_code, 0);
}

// What the administrator has said since is the administrator's.
TEST_F(GitUninstall, LeavesASettingThatWasChangedSince) {
  ASSERT_EQ(guard({"install"}).exit_code, 0);
  world.server_config("core.fsync", "all");
  const Finished removed = guard({"uninstall", "--json"});
  ASSERT_EQ(removed.exit_code, 0) << removed.err;
  EXPECT_EQ(json_field(removed.out, "core_fsync_restored"), "false");
  const auto now =
      world.git(a, {"--git-dir", world.repository(), "config", "--get-regexp", "fsync|stint"});
  EXPECT_EQ(now.out, "core.fsync all\n");
}

// A folder for hooks that only its maker may enter would switch them off for all others.
TEST_F(GitUninstall, TheHooksOfAnInstallationAreForEverybodyWhoPushes) {
  fs::remove_all(cat(world.repository(), "/hooks"));
  ASSERT_EQ(guard({"install"}).exit_code, 0);
  const auto mode = fs::status(cat(world.repository(), "/hooks")).permissions();
  EXPECT_EQ(mode, static_cast<fs::perms>(0755));
}

}  // namespace
}  // namespace stint::test
