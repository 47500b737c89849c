// What seals and pushes of the git guard share: whose a fence is, what follows it, and the seal.
#pragma once

#include <string_view>

#include "base/time.h"
#include "guard/git_remote.h"
#include "guard/git_target.h"
#include "guard/guard.h"
#include "os/temp_folder.h"

namespace stint::guard {

constexpr int kMostTries = 12;   // of one push or seal, while others are in the way
constexpr int kMostSettles = 5;  // of a push that got no answer
constexpr Millis kBetweenTries{25};
constexpr Millis kSealWithin{120'000};   // a seal with all its tries
constexpr Millis kSettleWithin{30'000};  // finding out about a push that got no answer

enum class Ours {
  Yes,
  ByOrder,       // our token, sealed by transfer or revoke: nobody's claim yet
  AnotherClaim,  // our token, and somebody else's
  No,            // another token, resource or generation
};
Ours is_ours(const GitFence& fence, const Pass& pass);

constexpr std::string_view kAnotherClaim =
    "its fence has this very token, and another claim: two runs believe to be the same holder. "
    "Look "
    "at 'stint show' and at who else writes there before going on";

// The fence of the next push of the same holder.
GitFence next_fence(const GitFence& standing, const Pass& pass);

// What a seal that core admits is to put there; empty: it stands already.
Result<std::optional<GitFence>> next_seal(const RemoteFence& standing,
                                          const core::FenceDecision& decision,
                                          const SealRequest& request, const std::string& target);
// Why the last try failed, in words and a code.
Error not_sealed(const std::string& target, const PushEnd& last);

// With what is known of the fence before anybody decides.
Refused refusal_at(const std::string& target, const RemoteFence& standing);

// A repository to push from: the one that we stand in if it has the target as a remote (its
// settings may be needed to get in), else an empty one for the moment. Changes the target's remote
// to that.
struct PushFrom {
  Git git;
  std::string url;
  std::optional<os::TempFolder> folder = {};
};
Result<PushFrom> repository_for(GitTarget& target);

// Raises the fence at the server. `standing`, if wanted: the fence afterwards.
Result<SealAnswer> seal_at(const GitRemote& remote, const std::string& target,
                           const SealRequest& request, api::Fences* fences, RemoteFence* standing);

}  // namespace stint::guard
