// What the plays with locks look at: the files of a server with our hooks, and what these recorded.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/text.h"
#include "tests/guard_git/git_world.h"

namespace stint::test {

class LockWorld : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return cat(world.repository(), "/", name); }
  // 0: there is none.
  static ino_t inode(const std::string& path) {
    struct stat there = {};
    return ::stat(path.c_str(), &there) == 0 ? there.st_ino : 0;
  }
  // Names of the records that stand.
  std::vector<std::string> records() const {
    std::vector<std::string> out;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(file("stint/locks"), none))
      out.push_back(entry.path().filename());
    return out;
  }
  // Whoever is answerable for a record, or a right, of that name.
  static pid_t process_of(const std::string& name) {
    const auto parts = split(name, '.');
    return parts.size() < 5 ? 0
                            : static_cast<pid_t>(parse_digits(parts[parts.size() - 2]).value_or(0));
  }
  static std::string start_of(pid_t pid) {
    const std::string stat = read_text(cat("/proc/", pid, "/stat"));
    return std::string(split(trim(stat.substr(stat.rfind(") ") + 2)), ' ').at(19));
  }
  static std::string boot() {
    return std::string(trim(read_text("/proc/sys/kernel/random/boot_id")));
  }
  static std::string space(const char* name) {
    const std::string link = std::filesystem::read_symlink(cat("/proc/self/ns/", name)).string();
    return link.substr(link.find('[') + 1, link.size() - link.find('[') - 2);
  }
  // BOOT.PIDNS.TIMENS, as the hooks write it here.
  std::string here() const {
    const std::string kind(
        trim(run({.argv = {"stat", "-f", "-c", "%T", world.repository()}, .cwd = "/"}).out));
    constexpr std::string_view kLocal[] = {"ext2/ext3", "xfs", "btrfs", "f2fs", "zfs", "tmpfs"};
    const bool local = std::ranges::find(kLocal, kind) != std::end(kLocal);
    return cat(boot(), local ? "." : "~.", space("pid"), ".", space("time"));
  }

  GitWorld world;
};

}  // namespace stint::test
