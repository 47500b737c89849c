#include "guard/git_exclude.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/text.h"
#include "os/artifact.h"
#include "os/directory.h"
#include "os/files.h"

namespace stint::guard {
namespace {

constexpr std::array<std::string_view, 7> kPatterns = {
    ".*.fence.[0-9]*", ".*.carried.[0-9]*", ".*.used.[0-9]*", ".*.stage.[0-9]*",
    ".*.seal.[0-9]*",  ".*.trash.[0-9]*",   ".*.guard.lock"};
constexpr std::string_view kWhy = "# What stint keeps beside the files that it guards";
constexpr std::size_t kMostBytes = 1U << 20U;

std::string path_from(const std::string& folder, std::string_view path) {
  return path.starts_with('/') ? std::string(path) : cat(folder, '/', path);
}

// The file that a linked work tree or a submodule has for its `.git`, and what it leads to.
std::string git_directory(const std::string& tree) {
  const std::string git = tree == "/" ? "/.git" : tree + "/.git";
  constexpr std::string_view kLeadsTo = "gitdir: ";
  const auto text = os::read_file(git);
  if (!text) return git;
  if (!text->starts_with(kLeadsTo)) return {};
  const std::string own = path_from(tree, trim(std::string_view(*text).substr(kLeadsTo.size())));
  // Of a linked work tree: what it shares with the others, info/exclude too.
  const auto common = os::read_file(own + "/commondir");
  return common ? path_from(own, trim(*common)) : own;
}

// Of the repository that the folder lies in; empty: in none, or not to be told.
std::string git_of(std::string folder) {
  while (!os::exists(folder == "/" ? "/.git" : folder + "/.git")) {
    if (folder == "/" || folder.empty()) return {};
    folder = os::parent_of(folder);
  }
  return git_directory(folder);
}

bool belongs_to(const os::Directory& directory, unsigned owner) {
  os::FileFacts facts;
  return directory.facts("", facts) == 0 && facts.owner == owner;
}

// What is to be added to that text.
std::string missing_in(std::string_view text) {
  const auto lines = split(text, '\n');
  std::string out;
  for (const std::string_view pattern : kPatterns) {
    const bool there =
        std::ranges::any_of(lines, [&](std::string_view line) { return trim(line) == pattern; });
    if (!there) out += cat(pattern, '\n');
  }
  if (out.empty()) return out;
  return cat(text.empty() || text.ends_with('\n') ? "" : "\n", kWhy, '\n', out);
}

// Another's repository may lead anywhere: no step follows a link, and each belongs to `owner`.
int open_exclude(const std::string& git, unsigned owner, os::Fd& out) {
  os::Directory repository;
  os::Directory info;
  if (const int number = os::Directory::open(git, repository)) return number;
  if (!belongs_to(repository, owner)) return EPERM;
  int number = repository.open_directory("info", info);
  if (number == ENOENT) {
    repository.make_directory("info", 0755);
    number = repository.open_directory("info", info);
  }
  if (number != 0) return number;
  return belongs_to(info, owner) ? info.open_file("exclude", 0644, out) : EPERM;
}

}  // namespace

std::span<const std::string_view> git_patterns() { return kPatterns; }

void keep_out_of_git(const std::string& folder) {
  const std::string git = git_of(folder);
  os::FileFacts facts;
  os::Fd file;
  if (git.empty() || os::facts_of(folder, facts) != 0) return;
  if (open_exclude(git, facts.owner, file) != 0) return;
  // Who has the lock is adding the same.
  if (os::try_lock(file.get()) != 0) return;
  std::string text;
  const int unread = os::read_bytes(file.get(), [&](std::string_view bytes) {
    if (text.size() <= kMostBytes) text += bytes;
  });
  if (unread != 0 || text.size() > kMostBytes) return;
  const std::string more = missing_in(text);
  // From where the reading ended.
  if (!more.empty()) static_cast<void>(os::write_whole(file.get(), more));
}

}  // namespace stint::guard
