// The words of a git target, and what they mean in a repository.
//
//   git:REMOTE/REF     a remote of the repository that one stands in: git:origin/main
//   git:URL#BRANCH     any repository, without a clone: git:ssh://host/blog.git#main
//   ...;fence=refs/heads/zz-fence/  where its fences are (default refs/stint/fence/)
//   ...;fallback=seal-commit        for servers that cannot push several refs at once
//   ...;look=always, ;look=never    whether a push that is told as done is looked at (git_look.h)
//
// The fence belongs to the repository and the resource, not to one branch: whoever seals one branch
// has sealed all that the resource guards there.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "guard/git_command.h"
#include "guard/git_fence.h"
#include "guard/git_look.h"

namespace stint::guard {

enum class GitFallback { None, SealCommit };

struct GitTarget {
  std::string remote;  // a remote's name, or a URL or path
  bool named = false;  // the former
  std::string branch;  // "refs/heads/main"
  std::string fence_prefix = std::string(kFencePrefix);
  GitFallback fallback = GitFallback::None;
  GitLook look = GitLook::ByServer;
};

// `words` with or without the leading "git:".
Result<GitTarget> parse_git_target(std::string_view words);

// Also accepts "main"; refuses what git would take for something else, and every '+'.
Result<std::string> full_branch(std::string_view name);

// The one URL that pushes go to, absolute where it is a path. A remote with several push URLs is an
// error: one push would be several, each with a fence of its own.
Result<std::string> push_url(const Git& git, const GitTarget& target);

// The remote of this repository whose push URL is `url`; empty: none, or no repository here.
std::string remote_with_url(const Git& git, const std::string& url);

// The same target in words that mean the same everywhere, without a password.
std::string canonical_git(const GitTarget& target, const std::string& url);
// Whether the two targets have the same fence.
bool same_fence(std::string_view one, std::string_view other);

std::string without_password(std::string_view url);

}  // namespace stint::guard
