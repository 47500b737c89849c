// The fallback for servers that cannot push several refs at once: the fence inside the branch.
//
// A seal is an empty commit on the branch with the trailers Fencing-Token, -Resource, -Generation,
// -Claim, -Owner and -Nonce. What is pushed must stand on one's own seal, and on no higher one: a
// push that is not a descendant of the server's branch is refused by the server, and one that was
// rebased over a successor's seal is refused here. Used only when asked for: seals stay in the
// history.
#pragma once

#include <string>

#include "guard/git_command.h"
#include "guard/git_fence.h"
#include "guard/git_guard.h"
#include "guard/guard.h"

namespace stint::guard {

struct BranchPlace {
  std::string remote;  // what git is told
  std::string url;     // where it is read
  std::string branch;  // "refs/heads/main"
  GitLook look = GitLook::ByServer;
};

std::string seal_message(const GitFence& fence);
// Strict, as parse_git_fence.
Result<GitFence> parse_seal_message(std::string_view message);

Result<SealAnswer> seal_by_commit(const Git& git, const BranchPlace& place,
                                  const std::string& target, const SealRequest& request,
                                  api::Fences* fences);

// STINT_GUARD=warn: the branch alone, past the fence, and never forced.
Result<GitPushed> push_unfenced(const GitPush& push, const std::string& oid, Refused warned);

Result<GitPushed> push_over_seals(const GitPush& push, const std::string& oid);

}  // namespace stint::guard
