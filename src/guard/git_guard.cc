#include "guard/git_guard.h"

#include "base/text.h"
#include "guard/git_commit_fence.h"
#include "guard/git_here.h"
#include "guard/git_pushing.h"

namespace stint::guard {
namespace {

// Narrow, not zero: the lease may run out on the way.
Result<std::optional<Refused>> not_live(const GitPush& push) {
  auto fences = push.fences();
  if (!fences) return fences.error();
  auto word = (*fences)->word(push.pass.resource);
  if (!word) return word.error();
  if (word->live && word->issued.newest == push.pass.token) return std::optional<Refused>();
  Refused why;
  why.target = cat("git:", push.target.remote);
  why.offered = push.pass.token;
  why.newest_owner = word->owner;
  why.condition = Condition::RequireLive;
  why.detail = "the lease is no longer live, and --require-live was asked for";
  return std::optional(std::move(why));
}

Result<GitPushed> push_fenced(const GitPush& push, Here here) {
  if (!push.pass.token.issued()) {
    Refused why;
    why.target = cat("git:", push.target.remote);
    why.verdict = core::Verdict::NoToken;
    return GitPushed{.answer = std::move(why), .target = {}, .oid = {}};
  }
  if (push.pass.require_live) {
    auto dead = not_live(push);
    if (!dead) return dead.error();
    if (*dead) return GitPushed{.answer = std::move(**dead), .target = {}, .oid = {}};
  }
  if (push.target.fallback == GitFallback::SealCommit) return push_over_seals(push, here.oid);
  return Pushing(push, std::move(here)).run();
}

}  // namespace

Result<GitPushed> push_git(const GitPush& push) {
  const std::string fence = fence_ref(push.target.fence_prefix, push.pass.resource);
  if (auto ok = check_fence_prefix(push.target.fence_prefix); !ok) return ok.error();
  if (push.target.fallback == GitFallback::None) {
    if (auto ok = check_fence_order(fence, push.target.branch); !ok) return ok.error();
  }
  if (push.target.fallback == GitFallback::SealCommit && push.pass.mode == core::FenceMode::Once) {
    return invalid(
        "--mode once cannot be kept with --fallback seal-commit: a seal in the history does not "
        "say whether its token has written already. Nothing was changed");
  }
  if (push.target.branch.starts_with(push.target.fence_prefix))
    return invalid(cat(quoted(push.target.branch), " is a place of fences, not a branch"));
  auto here = look_here(Git::in(push.folder), push.source, push.plain);
  if (!here) return here.error();
  auto pushed = push_fenced(push, *here);
  if (!pushed || !push.pass.warn) return pushed;
  auto* refused = std::get_if<Refused>(&pushed->answer);
  if (refused == nullptr || refused->condition == Condition::ServerHook) return pushed;
  return push_unfenced(push, here->oid, std::move(*refused));
}

}  // namespace stint::guard
