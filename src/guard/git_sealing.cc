#include "guard/git_sealing.h"

#include "base/text.h"
#include "guard/git_commit_fence.h"
#include "guard/git_guard.h"
#include "guard/git_hidden.h"
#include "guard/git_others.h"
#include "guard/git_probe.h"
#include "os/pause.h"
#include "os/random.h"
#include "os/temp_folder.h"

namespace stint::guard {
namespace {

GitFence fence_of(const core::Fence& fence, const SealRequest& request, std::uint64_t seq) {
  os::SystemRandom random;
  GitFence out{.fence = fence,
               .seq = seq,
               .claim = {},
               .owner = request.pass.owner.text(),
               .nonce = random.id_hex()};
  if (request.pass.claim && !request.by_order) out.claim = request.pass.claim->hash();
  return out;
}

}  // namespace

Result<std::optional<GitFence>> next_seal(const RemoteFence& standing,
                                          const core::FenceDecision& decision,
                                          const SealRequest& request, const std::string& target) {
  if (decision.fence) return std::optional(fence_of(*decision.fence, request, 0));
  // Equal to the fence.
  const GitFence& fence = *standing.fence;
  switch (is_ours(fence, request.pass)) {
    case Ours::Yes: return std::optional<GitFence>();
    case Ours::ByOrder:
      if (request.by_order) return std::optional<GitFence>();
      return std::optional(fence_of(fence.fence, request, fence.seq + 1));
    case Ours::AnotherClaim:
      // An order repeated after its token was taken up finds the holder's own fence.
      if (request.by_order) return std::optional<GitFence>();
      [[fallthrough]];
    case Ours::No: break;
  }
  return Error{Code::Failed, cat(quoted(target), ": ", kAnotherClaim, ". Nothing was changed.")};
}

Error not_sealed(const std::string& target, const PushEnd& last) {
  const std::string what = cat(quoted(target), " was not sealed: ", last.why);
  switch (last.fate) {
    case PushFate::Refused:
      if (last.why.find("hidden ref") != last.why.npos) {
        return {Code::Failed,
                cat(what,
                    ". It hides the place of fences (receive.hideRefs or transfer.hideRefs): "
                    "take that line away there, or give another place (--fence-ref). "
                    "Nothing was changed.")};
      }
      [[fallthrough]];
    case PushFate::Conflict: return {Code::Failed, cat(what, ". Nothing was changed.")};
    case PushFate::Unknown:
      return {Code::UnknownOutcome, cat(what, ". The fence may have been raised; seal again")};
    case PushFate::Landed:
    case PushFate::Moved:
    case PushFate::Locked:
    case PushFate::Unreached: break;
  }
  return {Code::Unavailable,
          cat(what, last.fate == PushFate::Locked
                        ? ". Other pushes were in the way every time; if none is going on, a "
                          "server that crashed has left a .lock file, which whoever runs it removes"
                        : "")};
}

Ours is_ours(const GitFence& fence, const Pass& pass) {
  if (fence.fence.resource != pass.resource.text() || fence.fence.generation != pass.generation ||
      fence.fence.token != pass.token) {
    return Ours::No;
  }
  if (fence.claim.empty()) return Ours::ByOrder;
  if (pass.claim) return fence.claim.matches(pass.claim->hash()) ? Ours::Yes : Ours::AnotherClaim;
  const bool same = !pass.owner.empty() && fence.owner == pass.owner.text();
  return same ? Ours::Yes : Ours::AnotherClaim;
}

GitFence next_fence(const GitFence& standing, const Pass& pass) {
  os::SystemRandom random;
  GitFence out = standing;
  ++out.seq;
  out.owner = pass.owner.text();
  out.nonce = random.id_hex();
  return out;
}

Refused refusal_at(const std::string& target, const RemoteFence& standing) {
  Refused out;
  out.target = target;
  if (!standing.fence) return out;
  if (auto owner = Owner::parse(standing.fence->owner)) out.newest_owner = *owner;
  return out;
}

Result<SealAnswer> seal_at(const GitRemote& remote, const std::string& target,
                           const SealRequest& request, api::Fences* fences, RemoteFence* standing) {
  PushEnd last;
  std::optional<PushEnd> lost;  // may still land, whatever becomes of later tries
  std::string expected;         // by the last try
  int unseen = 0;               // tries that found it moved, where a reading shows it as it was
  bool was_none = false;
  const auto told = [&](const Error& error) { return lost ? not_sealed(target, *lost) : error; };
  for (int i = 0; i < kMostTries; ++i) {
    auto read = remote.read();
    if (!read) return told(read.error());
    if (!read->unreadable.empty() && !request.adopt) {
      return Error{Code::Failed,
                   cat(quoted(target), ": ", read->unreadable,
                       ". Nothing was changed. An operator decides whether it is adopted")};
    }
    if (last.fate == PushFate::Moved && read->oid == expected) {
      constexpr int kSure = 3;
      if (++unseen == kSure) {
        return Error{Code::Failed,
                     cat(quoted(target), ": ", words_of_hidden(remote.place().ref), ". ",
                         lost ? take_back_fence(remote, lost->oid) : "Nothing was changed")};
      }
      os::pause_for(kBetweenTries * (i + 1));
    } else {
      unseen = 0;
    }
    expected = read->oid;
    Refused why = refusal_at(target, *read);
    if (i == 0) was_none = read->oid.empty();
    const auto fence = read->fence ? std::optional(read->fence->fence) : std::nullopt;
    auto decision = judge_seal(fence, request, fences, &why);
    if (!decision) return told(decision.error());
    if (decision->verdict != core::Verdict::Admitted) return SealAnswer(std::move(why));
    auto next = next_seal(*read, *decision, request, target);
    if (!next) return next.error();
    if (!*next) {
      if (standing != nullptr) *standing = std::move(*read);
      // Ours already: also when an earlier try of this very seal got no answer.
      return SealAnswer(Sealed{.already = i == 0});
    }
    auto end = remote.push({.expected = read->oid, .fence = **next, .limit = Git::kShort});
    if (!end) return told(end.error());
    last = std::move(*end);
    if (last.fate == PushFate::Unknown) lost = last;
    if (last.fate == PushFate::Landed) {
      if (read->oid.empty()) {
        if (auto shown = check_shown(remote, target, last.oid); !shown) return shown.error();
      }
      if (standing != nullptr) {
        *standing = {.oid = last.oid, .fence = **next, .unreadable = {}, .raw = last.raw};
      }
      return SealAnswer(Sealed{.already = false, .was_none = was_none, .narrow = {}});
    }
    if (last.fate == PushFate::Unreached || last.fate == PushFate::Refused) break;
    if (last.fate != PushFate::Moved) os::pause_for(kBetweenTries * (i + 1));
  }
  return not_sealed(target, lost ? *lost : last);
}

Result<std::string> canonical_git_target(const std::string& words) {
  auto target = parse_git_target(words);
  if (!target) return target.error();
  auto url = push_url(Git(), *target);
  if (!url) return url.error();
  return canonical_git(*target, *url);
}

Result<PushFrom> repository_for(GitTarget& target) {
  const Git here;
  if (auto ok = check_git_version(here); !ok) return ok.error();
  auto url = push_url(here, target);
  if (!url) return url.error();
  if (!target.named) {
    target.remote = *url;
    if (auto name = remote_with_url(here, *url); !name.empty()) {
      target.remote = std::move(name);
      target.named = true;
    }
  }
  if (target.named) return PushFrom{here, *url};
  auto folder = os::TempFolder::make("stint-git-");
  if (!folder) return folder.error();
  const Git scratch(folder->path());
  auto made = scratch.line({"init", "--quiet", "--bare", "--template=", folder->path()},
                           "making a repository to push from");
  if (!made) return made.error();
  return PushFrom{scratch, *url, std::move(*folder)};
}

Result<SealAnswer> seal_git(const std::string& words, const SealRequest& request,
                            api::Fences* fences) {
  auto target = parse_git_target(words);
  if (!target) return target.error();
  auto from = repository_for(*target);
  if (!from) return from.error();
  const std::string name = canonical_git(*target, from->url);
  if (target->fallback == GitFallback::SealCommit) {
    return seal_by_commit(from->git.within(kSealWithin),
                          {target->remote, from->url, target->branch, target->look}, name, request,
                          fences);
  }
  if (fences != nullptr && !request.by_order && !request.adopt) {
    auto others =
        refused_as_others(from->git.within(kSealWithin), from->url, name, request.pass, *fences);
    if (!others) return others.error();
    if (*others) return SealAnswer(std::move(**others));
  }
  const GitRemote at(from->git.within(kSealWithin),
                     {.remote = target->remote,
                      .url = from->url,
                      .ref = fence_ref(target->fence_prefix, request.pass.resource),
                      .scratch = !target->named,
                      .objects_in = {},
                      .look = target->look});
  return seal_at(at, name, request, fences, nullptr);
}

Guard git_guard() {
  return {.settle_words = [](const Target& target) { return canonical_git_target(target.words); },
          .seal = [](const Target& target, const SealRequest& request,
                     api::Fences* fences) { return seal_git(target.words, request, fences); },
          .check = [](const Target& target, api::Fences*) { return probe_git(target.words); }};
}

}  // namespace stint::guard
