// One fenced push, from the look at the fence to the answer. Behind git_guard.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "guard/git_guard.h"
#include "guard/git_here.h"
#include "guard/git_hint.h"
#include "guard/git_remote.h"

namespace stint::guard {

class Pushing {
 public:
  // `push` must outlive it.
  Pushing(const GitPush& push, Here here);

  Result<GitPushed> run();

 private:
  std::string digest() const { return cat(here_.oid, " ", push_.target.branch); }
  Result<PushFate> attempt();
  Status know_the_server();
  Status stand();  // sets standing_ to a fence of ours, or refused_
  Status seal_first();
  Status remember(api::Fences& fences, Refused why);
  // The seal, and what the store is told of it.
  Status raise(api::Fences* fences, const SealRequest& request);
  Status not_missing() const;
  Status judge();
  Result<PushFate> send();
  Result<PushFate> settle();
  Result<PushFate> landed_before();
  Result<PushFate> settled_past(const PushEnd& fresh);
  Result<PushFate> look_again(PushFate guessed);
  PushFate refused_by_server();
  // Whether the branch at the server has what was pushed.
  enum class Has { Yes, No, Unknown };
  Has branch_has() const;
  Result<GitPushed> end_with(PushFate fate);
  std::string no_answer() const;
  Error not_told(std::string_view but) const;
  Error always_locked() const;
  Error fault(std::string_view what) const;
  std::string_view unchanged() const;
  bool has_pre_push_hook() const;

  const GitPush& push_;
  const Here here_;
  const std::string ref_;
  const GitHint hint_;
  GitRemote remote_;
  GitPushed out_;
  RemoteFence standing_;
  bool hinted_ = false;
  bool verified_ = false;
  bool server_known_ = false;
  bool unsure_ = false;     // a push of ours got no answer, and it is not settled what it did
  bool unseen_ = false;     // told as moved, where a reading shows the fence as it was
  bool not_shown_ = false;  // told as done, and the server's refs do not show it
  bool stopped_by_hook_ =
      false;               // by git's words only: for ours, once it is known what became of it
  std::string hook_said_;  // by its words only, too
  std::optional<core::Fence> raised_;  // mode once: what the fence becomes with this write
  std::optional<Refused> refused_;
  std::vector<std::string> to_tell_;  // told when the fence stands
  bool first_ = false;                // nobody had remembered it before this push did
  bool anew_ = false;                 // its fence is missing, and this run is the present holder
  std::string why_;
  std::string last_;  // our own last fence object
};

}  // namespace stint::guard
