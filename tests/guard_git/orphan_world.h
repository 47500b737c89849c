// A server where by the operator's word nothing but git writes refs, and a lock that nobody
// recorded.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/text.h"
#include "guard/git_hook.h"
#include "tests/guard_git/lock_world.h"

namespace stint::test {

inline constexpr const char* kLock = "refs/tags/t.lock";

class GitOrphans : public LockWorld {
 protected:
  void SetUp() override {
    ASSERT_TRUE(guard::install_hook({.repository = world.repository(),
                                     .branches = {"refs/heads/*"},
                                     .fence = {},
                                     .only_git = true}));
    // A shell that is called git, and does what the file says that its first word names.
    std::filesystem::create_directories(world.dir().file("shells"));
    std::filesystem::copy_file("/bin/sh", world.dir().file("shells/git"));
    std::filesystem::create_directories(file("refs/tags"));
  }
  void TearDown() override { write_text(world.dir().file("end"), ""); }

  std::string lock() const { return file(kLock); }
  ino_t leave_lock() const {
    write_text(lock(), "");
    return inode(lock());
  }
  std::vector<std::string> looks() const {
    std::vector<std::string> out;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(file("stint/orphans"), none))
      out.push_back(entry.path());
    return out;
  }
  // A process that is called git and runs `word` in `folder` until it is ended.
  std::unique_ptr<Child> git_called(const std::string& word, const std::string& folder) const {
    write_text(cat(folder, "/", word), cat("echo >", world.dir().file("begun"), "\nwhile [ ! -e ",
                                           world.dir().file("end"), " ]; do sleep 0.02; done\n"));
    std::filesystem::remove(world.dir().file("begun"));
    auto out = std::make_unique<Child>(Command{
        .argv = {world.dir().file("shells/git"), word}, .cwd = folder, .die_with_parent = true});
    EXPECT_TRUE(wait_until([&] { return std::filesystem::exists(world.dir().file("begun")); }));
    return out;
  }
  std::unique_ptr<Child> git_called(const std::string& word) const {
    return git_called(word, world.dir().path());
  }
  Command push_command() const {
    return world.git_command(a, {"push", "origin", "HEAD:refs/tags/t"});
  }
  Finished push() const { return run(push_command()); }
  // Other git processes of this machine may be at work for a while.
  bool gets_in() const {
    return wait_until([&] { return push().exit_code == 0; });
  }
  // It stays, and that one is named. Another git of this machine may be named before it, and ends.
  bool stays_because_of(pid_t pid) const {
    const ino_t before = inode(lock());
    bool stayed = true;
    const bool named = wait_until([&] {
      const Finished other = push();
      stayed = stayed && other.exit_code != 0 && inode(lock()) == before;
      return !stayed || other.err.find(cat("the git process ", pid,
                                           ", which was there when it was first seen, is alive")) !=
                            std::string::npos;
    });
    return stayed && named;
  }
  // Programs of that name wait before they do what `only` says (a pattern of sh).
  Command held_in(const std::string& program, const std::string& only, const Barrier& barrier,
                  Command command) const {
    const std::string tools = world.dir().file(cat("tools-", program));
    std::filesystem::create_directories(tools);
    const std::string real = find_program(program);
    write_text(cat(tools, "/", program),
               cat("#!/bin/sh\ncase \"$*\" in ", only, ")\n(", barrier.script(),
                   ")\n;; esac\nexec ", real, " \"$@\"\n"));
    EXPECT_EQ(::chmod(cat(tools, "/", program).c_str(), 0755), 0);
    command.env.emplace_back("PATH", cat(tools, ":", std::getenv("PATH")));
    return command;
  }
  // A push that came as far as there: one that other gits of this machine held up is sent again.
  static std::unique_ptr<Child> held_at(const Barrier& barrier, const Command& slowly) {
    barrier.arm();
    std::unique_ptr<Child> slow;
    EXPECT_TRUE(wait_until([&] {
      if (!slow || !slow->running()) slow = std::make_unique<Child>(slowly);
      return wait_until([&] { return barrier.arrived() || !slow->running(); }) && barrier.arrived();
    }));
    return slow;
  }

  std::string a = world.clone("a");
};

}  // namespace stint::test
