// How a fenced push ends: what is found out when it got no answer, and what is told.
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "guard/git_hidden.h"
#include "guard/git_pushing.h"
#include "guard/git_sealing.h"
#include "os/pause.h"

namespace stint::guard {

// LAW: a fresh fence from the same expected value. Accepted: the lost push can no longer land. What
// it did before that only the branch can tell: the server puts the branch in place first, and may
// have been killed then.
Result<PushFate> Pushing::settle() {
  hint_.forget();
  unsure_ = true;
  // The time of the push may be over; it is worth some more to know what became of it.
  remote_ =
      GitRemote(remote_.git().at_least(std::min(push_.limit, kSettleWithin)), remote_.place());
  if (auto ok = know_the_server(); !ok) return PushFate::Unknown;
  const std::string lost = last_;
  std::vector<PushEnd> sent;
  for (int i = 0; i < kMostSettles; ++i) {
    auto fresh = next_fence(*standing_.fence, push_.pass);
    ++fresh.seq;
    auto end = remote_.push({.expected = standing_.oid, .fence = fresh, .limit = Git::kShort});
    if (!end) return PushFate::Unknown;
    if (end->fate == PushFate::Landed) return settled_past(*end);
    sent.push_back(std::move(*end));
    auto oid = remote_.oid_at_server(ref_);
    // One of ours, whose answer was lost as well.
    const auto ours = oid ? std::ranges::find(sent, *oid, &PushEnd::oid) : sent.end();
    if (ours != sent.end()) return settled_past(*ours);
    if (oid && *oid == lost) {
      // LAW: then it had landed. But a branch that it makes is put in place after the fence: the
      // same push again, from there, tells and mends it.
      const Has has = branch_has();
      if (has == Has::Unknown) return PushFate::Unknown;
      return has == Has::Yes ? PushFate::Landed : PushFate::Moved;
    }
    if (oid && *oid != standing_.oid) {
      // Somebody's later fence stands there: our lost push is dead or was followed.
      if (branch_has() == Has::Yes) return landed_before();
      return not_told("the fence has moved on since");
    }
    os::pause_for(kBetweenTries * (1 << i));  // what lost the answer may still be going on
  }
  return PushFate::Unknown;
}

// The branch has what was pushed, and a later fence stands there. Mode once: if that is still this
// token's, the use may not be in it; the same push again puts it there.
Result<PushFate> Pushing::landed_before() {
  if (!raised_) return PushFate::Landed;
  auto there = remote_.read();
  if (!there) return PushFate::Unknown;
  const bool ours = there->fence && is_ours(*there->fence, push_.pass) == Ours::Yes;
  return ours ? PushFate::Moved : PushFate::Landed;
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
  if (stopped_by_hook_) {
    return Error{Code::Failed, cat(quoted(out_.target), ": your pre-push hook refused it (", why_,
                                   "). The branch was not changed.")};
  }
  if (!hook_said_.empty()) return refused_by_server();
  return Error{Code::Failed, cat(quoted(out_.target), ": ", no_answer(),
                                 ". It did not land and can no longer land: the fence has been "
                                 "moved past it. The branch was not changed; push again")};
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

std::string Pushing::no_answer() const {
  return not_shown_ ? why_ : cat("the push got no answer (", why_, ")");
}

Error Pushing::not_told(std::string_view but) const {
  return {Code::UnknownOutcome,
          cat(quoted(out_.target), ": ", no_answer(), ", and ", but, ". Look whether ", here_.oid,
              " is in the branch before doing anything else")};
}

// The fence stands where it stood, or was moved past the push: nothing of it has landed.
PushFate Pushing::refused_by_server() {
  Refused why = refusal_at(out_.target, standing_);
  why.verdict = hook_said_.starts_with("stale") ? core::Verdict::Stale : core::Verdict::Foreign;
  why.offered = push_.pass.token;
  why.detail = hook_said_;
  why.condition = Condition::ServerHook;
  refused_ = std::move(why);
  return PushFate::Refused;
}

// Words are no proof: the fence itself says whether it moved.
Result<PushFate> Pushing::look_again(PushFate guessed) {
  if (auto ok = know_the_server(); !ok) return ok.error();
  auto oid = remote_.oid_at_server(ref_);
  if (!oid) return oid.error();
  unseen_ = guessed == PushFate::Moved && *oid == standing_.oid;
  if (*oid != standing_.oid) return PushFate::Moved;
  return guessed == PushFate::Moved ? PushFate::Locked : guessed;
}

Result<GitPushed> Pushing::end_with(PushFate fate) {
  if (fate == PushFate::Landed) {
    if (auto* written = std::get_if<Written>(&out_.answer)) written->digest = here_.oid;
    return std::move(out_);
  }
  if (fate == PushFate::Unknown) {
    return Error{Code::UnknownOutcome,
                 cat(quoted(out_.target), ": ", no_answer(),
                     ", and it cannot be found out now whether it landed. Push again: the same "
                     "push twice does no harm")};
  }
  if (unsure_) return not_told(cat("another try failed: ", why_));
  if (fate == PushFate::Conflict) {
    return Error{Code::Failed,
                 cat("conflict: ", quoted(push_.target.branch), " at ", quoted(push_.target.remote),
                     " has moved on, and what you push does not follow it (", why_,
                     "). Fetch and rebase, then push again; the fence still stands at token ",
                     push_.pass.token.number(), ". ", unchanged())};
  }
  if (fate == PushFate::Unreached) {
    return unavailable(cat(quoted(out_.target), " was not reached: ", why_, ". ", unchanged()));
  }
  return fault(cat("the push was refused: ", why_));
}

Error Pushing::always_locked() const {
  if (unseen_) return fault(words_of_hidden(ref_));
  // An earlier push of the same may have been cut short after the branch.
  const bool has = branch_has() == Has::Yes;
  return unavailable(
      cat(quoted(out_.target), ": other pushes were in the way every time (", why_,
          "). If no push is going on, a server that crashed has left a .lock file: whoever runs it "
          "removes that. ",
          has ? "The branch has what you push already; the fence was not moved." : unchanged()));
}

}  // namespace stint::guard
