#include "guard/git_guard.h"

#include <algorithm>

#include "base/text.h"
#include "guard/git_commit_fence.h"
#include "guard/git_here.h"
#include "guard/git_hint.h"
#include "guard/git_remote.h"
#include "guard/git_sealing.h"
#include "os/pause.h"
#include "os/random.h"

namespace stint::guard {
namespace {

class Pushing {
 public:
  Pushing(const GitPush& push, Here here)
      : push_(push),
        here_(std::move(here)),
        ref_(fence_ref(push.target.fence_prefix, push.pass.resource)),
        hint_(here_.git_dir, push.target.remote, ref_),
        remote_(Git(), {.remote = push.target.remote,
                        .url = {},
                        .ref = ref_,
                        .scratch = false,
                        .objects_in = here_.plain ? here_.git_dir : std::string()}) {
    out_.oid = here_.oid;
    out_.target =
        cat("git:", push.target.remote, push.target.named ? "/" : "#", push.target.branch);
  }

  Result<GitPushed> run();

 private:
  std::string digest() const { return cat(here_.oid, " ", push_.target.branch); }
  Result<PushFate> attempt();
  Status know_the_server();
  Status stand();  // sets standing_ to a fence of ours, or refused_
  Status seal_first();
  Status remember(api::Fences& fences, Refused why);
  Status judge();
  Result<PushFate> send();
  Result<PushFate> settle();
  Result<PushFate> settled_past(const PushEnd& fresh);
  Result<PushFate> look_again(PushFate guessed);
  // Whether the branch at the server has what was pushed.
  enum class Has { Yes, No, Unknown };
  Has branch_has() const;
  Result<GitPushed> end_with(PushFate fate);
  Error not_told(std::string_view but) const;
  Error always_locked() const;
  Error fault(std::string_view what) const;

  const GitPush& push_;
  const Here here_;
  const std::string ref_;
  const GitHint hint_;
  GitRemote remote_;
  GitPushed out_;
  StandingFence standing_;
  bool hinted_ = false;
  bool verified_ = false;
  bool server_known_ = false;
  bool unsure_ = false;  // a push of ours got no answer, and it is not settled what it did
  std::optional<core::Fence> raised_;  // mode once: what the fence becomes with this write
  std::optional<Refused> refused_;
  std::string why_;
  std::string last_;  // our own last fence object
};

Error Pushing::fault(std::string_view what) const {
  return {Code::Failed, cat(quoted(out_.target), ": ", what, ". Nothing was changed.")};
}

// Things that are looked at only where the hint does not stand for them: it was made after them.
Status Pushing::know_the_server() {
  if (server_known_) return {};
  if (auto ok = check_git_version(remote_.git()); !ok) return ok;
  auto url = push_url(remote_.git(), push_.target);
  if (!url) return url.error();
  auto place = remote_.place();
  place.url = *url;
  remote_ = GitRemote(remote_.git(), std::move(place));
  out_.target = canonical_git(push_.target, *url);
  server_known_ = true;
  return {};
}

Status Pushing::stand() {
  if (auto hint = hinted_ ? std::nullopt : hint_.read(here_.oid);
      hint && is_ours(*hint->fence, push_.pass) == Ours::Yes) {
    standing_ = std::move(*hint);
    hinted_ = true;
    return {};
  }
  hinted_ = true;
  if (auto ok = know_the_server(); !ok) return ok;
  auto read = remote_.read();
  if (!read) return read.error();
  standing_ = std::move(*read);
  if (!standing_.unreadable.empty()) return fault(standing_.unreadable);
  if (standing_.fence) {
    switch (is_ours(*standing_.fence, push_.pass)) {
      case Ours::Yes: return {};
      case Ours::AnotherClaim: return fault(kAnotherClaim);
      case Ours::ByOrder:
      case Ours::No: break;
    }
  }
  // Once a fence of ours stood there it may be higher now, and never lower or gone.
  if (!last_.empty()) {
    const bool higher = standing_.fence && standing_.fence->fence.token > push_.pass.token;
    if (!higher) return fault("its fence went back or is gone since this run's last push");
  }
  return seal_first();
}

Status Pushing::seal_first() {
  // A higher fence is an answer by itself; only what would raise it needs the store.
  const auto fence = standing_.fence ? std::optional(standing_.fence->fence) : std::nullopt;
  const auto first = core::seal(fence, offer_of(push_.pass, ""), std::nullopt);
  api::Fences* fences = nullptr;
  if (first.verdict == core::Verdict::AskStore) {
    auto opened = push_.fences();
    if (!opened) return opened.error();
    fences = *opened;
  }
  const SealRequest request{.pass = push_.pass, .by_order = false, .adopt = {}};
  Refused why = refusal_at(out_.target, standing_);
  auto decision = judge_seal(fence, request, fences, &why);
  if (!decision) return decision.error();
  if (decision->verdict != core::Verdict::Admitted) {
    refused_ = std::move(why);
    return {};
  }
  if (fences != nullptr) {
    if (auto ok = remember(*fences, std::move(why)); !ok || refused_) return ok;
  }
  if (push_.dry_run) return {};
  auto answer = seal_at(remote_, out_.target, request, fences, &standing_);
  if (!answer) return answer.error();
  if (const auto* refused = std::get_if<Refused>(&*answer)) {
    refused_ = *refused;
    return {};
  }
  out_.sealed = true;
  return {};
}

// Before it is sealed: transfer and revoke must find every target that may be.
Status Pushing::remember(api::Fences& fences, Refused why) {
  auto sealed = fences.sealed(push_.pass.resource);
  if (!sealed) return sealed.error();
  const bool known = std::ranges::any_of(
      *sealed, [&](const std::string& one) { return same_fence(one, out_.target); });
  if (known && standing_.oid.empty()) {
    return fault(
        "it had been sealed, and its fence is missing. Find out what happened to the "
        "repository; then 'stint seal' by the present holder makes the fence anew");
  }
  if (known || push_.dry_run) return {};
  auto remembered = fences.remember(offer_of(push_.pass, ""), {out_.target});
  if (!remembered) return remembered.error();
  if (*remembered != core::Verdict::Admitted) {
    why.verdict = *remembered;
    refused_ = std::move(why);
  }
  return {};
}

// A fence of our own token needs no store; what is left to judge is mode once.
Status Pushing::judge() {
  Refused why = refusal_at(out_.target, standing_);
  auto decision = judge_write(standing_.fence->fence, push_.pass, digest(), nullptr, &why);
  if (!decision) return decision.error();
  raised_ = decision->fence;
  switch (decision->verdict) {
    case core::Verdict::Admitted: return {};
    case core::Verdict::Done:
      // Pushed again all the same: a server that crashed may have moved the fence alone.
      out_.answer = Written{.digest = here_.oid, .already = true};
      return {};
    case core::Verdict::AskStore:
    case core::Verdict::Stale:
    case core::Verdict::Used:
    case core::Verdict::NeverIssued:
    case core::Verdict::NeverGranted:
    case core::Verdict::Foreign:
    case core::Verdict::NoToken:
    case core::Verdict::Restored: break;
  }
  refused_ = std::move(why);
  return {};
}

Result<PushFate> Pushing::send() {
  PushPlan plan{.expected = standing_.oid,
                .fence = next_fence(*standing_.fence, push_.pass),
                .branches = {{here_.oid, push_.target.branch}},
                .verify = !verified_,
                .limit = push_.limit};
  if (raised_) plan.fence.fence = *raised_;
  verified_ = true;
  auto end = remote_.push(plan);
  if (!end) return end.error();
  if (push_.tell) push_.tell(end->talk);
  why_ = end->why;
  last_ = end->oid;
  if (end->fate == PushFate::Landed) hint_.keep(end->raw);
  return end->fate;
}

// LAW: a fresh fence from the same expected value. Accepted: the lost push can no longer land. What
// it did before that only the branch can tell: the server puts the branch in place first, and may
// have been killed then.
Result<PushFate> Pushing::settle() {
  hint_.forget();
  unsure_ = true;
  if (auto ok = know_the_server(); !ok) return PushFate::Unknown;
  const std::string lost = last_;
  for (int i = 0; i < kMostSettles; ++i) {
    auto fresh = next_fence(*standing_.fence, push_.pass);
    ++fresh.seq;
    auto end = remote_.push({.expected = standing_.oid, .fence = fresh, .limit = Git::kShort});
    if (!end) return PushFate::Unknown;
    if (end->fate == PushFate::Landed) return settled_past(*end);
    auto oid = remote_.oid_at_server(ref_);
    if (oid && *oid == lost) {
      // LAW: then it had landed. But a branch that it makes is put in place after the fence: the
      // same push again, from there, tells and mends it.
      const Has has = branch_has();
      if (has == Has::Unknown) return PushFate::Unknown;
      return has == Has::Yes ? PushFate::Landed : PushFate::Moved;
    }
    if (oid && *oid != standing_.oid) {
      // Somebody's later fence stands there: our lost push is dead or was followed.
      if (branch_has() == Has::Yes) return PushFate::Landed;
      return not_told("the fence has moved on since");
    }
    os::pause_for(kBetweenTries);
  }
  return PushFate::Unknown;
}

// The fence was moved past the lost push.
Result<PushFate> Pushing::settled_past(const PushEnd& fresh) {
  hint_.keep(fresh.raw);
  switch (branch_has()) {
    case Has::Unknown: return not_told("the branch could not be looked at");
    case Has::Yes:
      // Mode once: the use is not in the fence yet; the same push again puts it there.
      return raised_ ? PushFate::Moved : PushFate::Landed;
    case Has::No: break;
  }
  unsure_ = false;
  return Error{Code::Failed, cat(quoted(out_.target), ": the push got no answer (", why_,
                                 "). It did not land and can no longer land: the fence has been "
                                 "moved past it. Nothing was changed; push again")};
}

Pushing::Has Pushing::branch_has() const {
  auto tip = remote_.oid_at_server(push_.target.branch);
  if (!tip) return Has::Unknown;
  if (*tip == here_.oid) return Has::Yes;
  if (tip->empty()) return Has::No;
  // Somebody may have written on top of it.
  auto contains = remote_.contains(push_.target.branch, *tip, here_.oid);
  if (!contains) return Has::Unknown;
  return *contains ? Has::Yes : Has::No;
}

Error Pushing::not_told(std::string_view but) const {
  return {Code::UnknownOutcome,
          cat(quoted(out_.target), ": the push got no answer (", why_, "), and ", but,
              ". Look whether ", here_.oid, " is in the branch before doing anything else")};
}

// Words are no proof: the fence itself says whether it moved.
Result<PushFate> Pushing::look_again(PushFate guessed) {
  if (auto ok = know_the_server(); !ok) return ok.error();
  auto oid = remote_.oid_at_server(ref_);
  if (!oid) return oid.error();
  if (*oid != standing_.oid) return PushFate::Moved;
  return guessed == PushFate::Moved ? PushFate::Locked : guessed;
}

Result<PushFate> Pushing::attempt() {
  if (auto ok = stand(); !ok) return ok.error();
  if (refused_) return PushFate::Refused;
  if (push_.dry_run && !standing_.fence) return PushFate::Landed;
  if (auto ok = judge(); !ok) return ok.error();
  if (refused_) return PushFate::Refused;
  if (push_.dry_run) return PushFate::Landed;
  auto fate = send();
  if (!fate) return fate;
  switch (*fate) {
    case PushFate::Landed: return fate;
    case PushFate::Unknown: return settle();
    case PushFate::Unreached: hint_.forget(); return fate;
    case PushFate::Moved:
    case PushFate::Locked:
    case PushFate::Conflict:
    case PushFate::Refused: hint_.forget(); return look_again(*fate);
  }
  return fate;
}

Result<GitPushed> Pushing::run() {
  for (int i = 0; i < kMostTries; ++i) {
    auto fate = attempt();
    if (!fate) {
      if (!unsure_ || fate.error().code == Code::UnknownOutcome) return fate.error();
      return not_told(fate.error().message);
    }
    if (refused_) {
      if (unsure_) return not_told("a newer holder is there now");
      out_.answer = std::move(*refused_);
      return std::move(out_);
    }
    switch (*fate) {
      case PushFate::Moved: break;  // another process of this run, or a newer holder: stand()
      case PushFate::Locked: os::pause_for(kBetweenTries * (i + 1)); break;
      case PushFate::Landed:
      case PushFate::Conflict:
      case PushFate::Refused:
      case PushFate::Unreached:
      case PushFate::Unknown: return end_with(*fate);
    }
  }
  if (unsure_) return not_told("other pushes were in the way every time");
  return always_locked();
}

Result<GitPushed> Pushing::end_with(PushFate fate) {
  if (fate == PushFate::Landed) {
    if (auto* written = std::get_if<Written>(&out_.answer)) written->digest = here_.oid;
    return std::move(out_);
  }
  if (fate == PushFate::Unknown) {
    return Error{Code::UnknownOutcome,
                 cat(quoted(out_.target), ": the push got no answer (", why_,
                     "), and it cannot be found out now whether it landed. Push again: the same "
                     "push twice does no harm")};
  }
  if (unsure_) return not_told(cat("another try failed: ", why_));
  if (fate == PushFate::Conflict) {
    return Error{Code::Failed,
                 cat("conflict: ", quoted(push_.target.branch), " at ", quoted(push_.target.remote),
                     " has moved on, and what you push does not follow it (", why_,
                     "). Fetch and rebase, then push again; the fence still stands at token ",
                     push_.pass.token.number(), ". Nothing was changed.")};
  }
  if (fate == PushFate::Unreached) {
    return unavailable(
        cat(quoted(out_.target), " was not reached: ", why_, ". Nothing was changed."));
  }
  return fault(cat("the push was refused: ", why_));
}

Error Pushing::always_locked() const {
  // An earlier push of the same may have been cut short after the branch.
  const bool has = branch_has() == Has::Yes;
  return unavailable(
      cat(quoted(out_.target), ": other pushes were in the way every time (", why_,
          "). If no push is going on, a server that crashed has left a .lock file: whoever runs it "
          "removes that. ",
          has ? "The branch has what you push already; the fence was not moved."
              : "Nothing was changed."));
}

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

}  // namespace

namespace {

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
  if (push.target.branch.starts_with(push.target.fence_prefix))
    return invalid(cat(quoted(push.target.branch), " is a place of fences, not a branch"));
  auto here = look_here(Git(), push.source, push.plain);
  if (!here) return here.error();
  auto pushed = push_fenced(push, *here);
  if (!pushed || !push.pass.warn) return pushed;
  auto* refused = std::get_if<Refused>(&pushed->answer);
  if (refused == nullptr) return pushed;
  return push_unfenced(push, here->oid, std::move(*refused));
}

}  // namespace stint::guard
