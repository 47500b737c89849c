#include "guard/git_pushing.h"

#include <algorithm>

#include "base/text.h"
#include "guard/git_others.h"
#include "guard/git_sealing.h"
#include "os/files.h"
#include "os/pause.h"

namespace stint::guard {

Pushing::Pushing(const GitPush& push, Here here)
    : push_(push),
      here_(std::move(here)),
      ref_(fence_ref(push.target.fence_prefix, push.pass.resource)),
      hint_(here_.git_dir, push.target.remote, ref_, settings_digest(here_, push.settings)),
      remote_(Git::in(push.folder).within(push.limit),
              {.remote = push.target.remote,
               .url = {},
               .ref = ref_,
               .scratch = false,
               .objects_in = here_.plain ? here_.git_dir : std::string(),
               .look = push.target.look,
               .branch = push.target.branch}) {
  out_.oid = here_.oid;
  out_.target = cat("git:", push.target.remote, push.target.named ? "/" : "#", push.target.branch);
}

Error Pushing::fault(std::string_view what) const {
  return {Code::Failed, cat(quoted(out_.target), ": ", what, ". ", unchanged())};
}

// The seal stands even if the push that follows it does not land.
std::string_view Pushing::unchanged() const {
  return out_.sealed ? "The branch was not changed; the fence was sealed." : "Nothing was changed.";
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
    if (hint_.knows_settings()) return {};
    if (auto ok = check_git_version(remote_.git()); !ok) return ok;
    // A push to several servers at once would land at one and be refused by the next.
    auto url = push_url(remote_.git(), push_.target);
    return url ? Status() : url.error();
  }
  hinted_ = true;
  if (auto ok = know_the_server(); !ok) return ok;
  auto read = remote_.read();
  if (!read) return read.error();
  standing_ = std::move(*read);
  // The server puts what it leads to in place after the fence: a newer holder could seal and read
  // between the two (ADR 0016). G5
  if (!standing_.leads_to.empty()) {
    return invalid(cat(quoted(push_.target.branch), " at ", quoted(push_.target.remote),
                       " is a symbolic ref and leads to ", quoted(standing_.leads_to),
                       ": push to that one itself. Nothing was changed"));
  }
  if (!standing_.unreadable.empty()) return fault(standing_.unreadable);
  if (standing_.fence) {
    switch (is_ours(*standing_.fence, push_.pass)) {
      case Ours::Yes: return {};
      case Ours::AnotherClaim: return fault(kAnotherClaim);
      case Ours::ByOrder:
      case Ours::No: break;
    }
  }
  // Once a fence of ours stood there it may be higher now, and never lower. If it is gone, only the
  // store can tell whether it is ours to make anew, and not while a push of ours may still land.
  if (!last_.empty() && (unsure_ || !standing_.oid.empty())) {
    const bool higher = standing_.fence && standing_.fence->fence.token > push_.pass.token;
    if (!higher) return fault("its fence went back or is gone since this run's last push");
  }
  return seal_first();
}

Status Pushing::seal_first() {
  // A higher fence is an answer by itself; what would raise it needs the store.
  const auto fence = standing_.fence ? std::optional(standing_.fence->fence) : std::nullopt;
  const auto first = core::seal(fence, offer_of(push_.pass, ""), std::nullopt);
  api::Fences* fences = nullptr;
  if (first.verdict == core::Verdict::AskStore) {
    auto opened = push_.fences();
    if (!opened) return opened.error();
    fences = *opened;
  } else if (first.verdict == core::Verdict::Stale) {
    // To tell why, if it can be had.
    if (auto opened = push_.fences()) fences = *opened;
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
  return push_.dry_run ? Status() : raise(fences, request);
}

Status Pushing::raise(api::Fences* fences, const SealRequest& request) {
  auto answer = seal_at(remote_, out_.target, request, fences, &standing_);
  const bool sealed = answer && std::holds_alternative<Sealed>(*answer);
  const bool unknown = !answer && answer.error().code == Code::UnknownOutcome;
  if (!sealed && !unknown && first_ && fences != nullptr) {
    take_back(*fences, request, out_.target);
  }
  if (!answer) return answer.error();
  if (const auto* refused = std::get_if<Refused>(&*answer)) {
    refused_ = *refused;
    return {};
  }
  out_.sealed = true;
  if (fences != nullptr) {
    tell_standing(*fences, request, to_tell_,
                  anew_ ? core::Sealing::MadeAnew : core::Sealing::Stands);
  }
  return {};
}

// It was sealed, and no fence was seen. What is told as sealed has a fence already: another process
// of this run may have made it since we looked.
Status Pushing::not_missing() const {
  auto oid = remote_.oid_at_server(ref_);
  if (!oid) return oid.error();
  if (!oid->empty()) return {};
  return fault(
      "it had been sealed, and its fence is missing. Find out what happened to the "
      "repository; the present holder's next push or seal makes the fence anew");
}

// Before it is sealed: transfer and revoke must find every target that may be.
Status Pushing::remember(api::Fences& fences, Refused why) {
  auto word = fences.word(push_.pass.resource);
  if (!word) return word.error();
  to_tell_.clear();
  bool sealed = false;
  // Of all branches there: they share the fence.
  for (const std::string& one : word->sealed) {
    if (!same_fence(one, out_.target)) continue;
    sealed = sealed || memory_of(*word, one) == Memory::Sealed;
    to_tell_.push_back(one);
  }
  if (sealed && standing_.oid.empty()) {
    // The store's word of this moment is the simpler evidence: nobody newer can have sealed it.
    anew_ = is_present_holder(*word, push_.pass);
    if (!anew_) return not_missing();
  }
  auto others =
      refused_as_others(remote_.git(), remote_.place().url, out_.target, push_.pass, fences);
  if (!others) return others.error();
  refused_ = std::move(*others);
  if (refused_) return {};
  if (sealed || push_.dry_run) return {};
  first_ = to_tell_.empty();
  if (first_) to_tell_.push_back(out_.target);
  auto remembered = fences.remember(offer_of(push_.pass, ""), to_tell_);
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
  not_shown_ = end->not_shown;
  last_ = end->oid;
  hook_said_ = words_of_hook(end->talk);
  stopped_by_hook_ = plan.verify && end->fate == PushFate::Unknown && only_git_gave_up(end->talk) &&
                     has_pre_push_hook();
  if (end->fate == PushFate::Landed) hint_.keep(end->raw);
  return end->fate;
}

bool Pushing::has_pre_push_hook() const {
  auto path = remote_.git().line({"rev-parse", "--git-path", "hooks/pre-push"}, "");
  return path && os::exists(remote_.git().from_here(*path));
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
    case PushFate::Refused: {
      hint_.forget();
      auto again = look_again(*fate);
      if (!again || *again == PushFate::Moved || hook_said_.empty()) return again;
      return refused_by_server();
    }
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
  if (unsure_)
    return not_told(not_shown_ ? "so it was at every try"
                               : "other pushes were in the way every time");
  return always_locked();
}

}  // namespace stint::guard
