#include "guard/git_commit_fence.h"

#include <algorithm>

#include "base/text.h"
#include "guard/git_porcelain.h"
#include "guard/git_sealing.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"

namespace stint::guard {
namespace {

constexpr std::string_view kNames[] = {"Token", "Resource", "Generation",
                                       "Claim", "Owner",    "Nonce"};

// The highest seal of the resource in what `tip` stands on.
Result<std::optional<GitFence>> highest_seal(const Git& git, const std::string& tip,
                                             const ResourceName& resource) {
  auto end =
      git.run({"log", "--format=%x01%B", "--grep=^Fencing-Token: ", "--end-of-options", tip});
  if (!end) return end.error();
  if (!end->ok()) return Error{Code::Failed, git_words(end->talk)}.during("looking for seals");
  std::optional<GitFence> highest;
  for (const std::string_view message : split(end->out, '\1')) {
    if (trim(message).empty()) continue;
    auto seal = parse_seal_message(message);
    // A seal that cannot be read may be higher than ours.
    if (!seal) return seal.error();
    if (seal->fence.resource != resource.text()) continue;
    if (!highest || seal->fence.token > highest->fence.token) highest = std::move(*seal);
  }
  return highest;
}

// The branch as the server has it; empty: it is not there.
Result<std::string> fetch_branch(const Git& git, const BranchPlace& place) {
  const GitRemote remote(git, {.remote = place.remote, .url = place.url, .ref = place.branch});
  auto oid = remote.oid_at_server(place.branch);
  if (!oid || oid->empty()) return oid;
  auto fetched =
      git.run({"fetch", "--no-tags", "--quiet", "--refmap=", "--", place.url, place.branch},
              Millis(300'000));
  if (!fetched) return fetched.error();
  if (!fetched->ok()) return unavailable(git_words(fetched->talk)).during("fetching the branch");
  return oid;
}

Result<PushEnd> push_branch(const Git& git, const BranchPlace& place, const std::string& oid,
                            std::vector<std::string> options) {
  std::vector<std::string> words = {"push", "--porcelain"};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), {"--", place.remote, cat(oid, ":", place.branch)});
  auto end = git.run(words, Millis(300'000));
  PushEnd out;
  out.oid = oid;
  if (!end) {
    if (end.error().code != Code::UnknownOutcome) return end.error();
    out.why = end.error().message;
    return out;
  }
  out.talk = std::move(end->talk);
  out.fate =
      fate_of_push(end->how.code(), parse_porcelain(end->out), out.talk, place.branch, &out.why);
  const GitRemote remote(git, {.remote = place.remote,
                               .url = place.url,
                               .ref = place.branch,
                               .scratch = false,
                               .objects_in = {},
                               .look = place.look});
  remote.look_at(out, {{oid, place.branch}}, pushed_to(end->out));
  if (out.fate == PushFate::Unknown) {
    auto now = remote.oid_at_server(place.branch);
    if (now && *now == oid) out.fate = PushFate::Landed;  // a read that shows the effect
  }
  return out;
}

Result<std::string> make_seal(const Git& git, const std::string& tip, const GitFence& fence) {
  auto tree = git.line({"rev-parse", "--verify", cat(tip, "^{tree}")}, "reading the branch");
  if (!tree) return tree.error();
  const auto wall = os::SystemClock().wall().time_since_epoch();
  const auto at_s = std::chrono::duration_cast<std::chrono::seconds>(wall).count();
  const std::string raw =
      encode_commit({.tree = *tree, .parent = tip, .at_s = at_s}, seal_message(fence));
  auto end = git.run({"hash-object", "-w", "-t", "commit", "--stdin"}, Git::kShort, raw);
  if (!end) return end.error();
  if (!end->ok()) return Error{Code::Failed, git_words(end->talk)}.during("making a seal");
  return std::string(trim(end->out));
}

Result<GitPushed> stand_on_seal_first(const GitPush& push, const BranchPlace& place,
                                      const std::string& name) {
  auto fences = push.fences();
  if (!fences) return fences.error();
  if (push.dry_run) return GitPushed{.answer = Written{}, .target = name, .oid = {}};
  auto before = (*fences)->word(push.pass.resource);
  if (!before) return before.error();
  auto remembered = (*fences)->remember(offer_of(push.pass, ""), {name});
  if (!remembered) return remembered.error();
  const SealRequest request{.pass = push.pass, .adopt = {}};
  auto sealed =
      seal_by_commit(Git::in(push.folder).within(push.limit), place, name, request, *fences);
  const bool refused_first = sealed ? std::holds_alternative<Refused>(*sealed)
                                    : sealed.error().code != Code::UnknownOutcome;
  if (refused_first && memory_of(*before, name) == Memory::None) take_back(**fences, request, name);
  if (!sealed) return sealed.error();
  if (auto* refused = std::get_if<Refused>(&*sealed))
    return GitPushed{.answer = std::move(*refused), .target = name, .oid = {}};
  tell_standing(**fences, request, {name});
  return Error{Code::Failed,
               cat("conflict: ", quoted(name), " is sealed with token ", push.pass.token.number(),
                   ", and what you push does not stand on that seal. Fetch and rebase, then push "
                   "again. The branch's content was not changed.")};
}

}  // namespace

std::string seal_message(const GitFence& f) {
  return cat("Seal ", f.fence.resource, " for token ", f.fence.token.number(),
             "\n\nFencing-Token: ", f.fence.token.number(),
             "\nFencing-Resource: ", f.fence.resource,
             "\nFencing-Generation: ", f.fence.generation.hex(), "\nFencing-Claim: ", claim_text(f),
             "\nFencing-Owner: ", f.owner, "\nFencing-Nonce: ", f.nonce, "\n");
}

Result<GitFence> parse_seal_message(std::string_view message) {
  std::string values[std::size(kNames)];
  for (const std::string_view line : split(message, '\n')) {
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      const std::string start = cat("Fencing-", kNames[i], ": ");
      if (line.starts_with(start)) values[i] = std::string(line.substr(start.size()));
    }
  }
  // One parser for both shapes.
  return parse_git_fence(cat("stint fence 1\nresource ", values[1], "\ngeneration ", values[2],
                             "\ntoken ", values[0], "\nseq 0\nclaim ", values[3], "\nowner ",
                             values[4], "\nnonce ", values[5], "\n"));
}

Result<SealAnswer> seal_by_commit(const Git& git, const BranchPlace& place,
                                  const std::string& target, const SealRequest& request,
                                  api::Fences* fences) {
  PushEnd last;
  std::optional<PushEnd> lost;  // may still land, whatever becomes of later tries
  const auto told = [&](const Error& error) { return lost ? not_sealed(target, *lost) : error; };
  for (int i = 0; i < kMostTries; ++i) {
    auto tip = fetch_branch(git, place);
    if (!tip) return told(tip.error());
    if (tip->empty()) {
      return Error{Code::Failed, cat(quoted(target),
                                     ": there is no such branch to be sealed. "
                                     "Push a first commit by hand")};
    }
    auto seal = highest_seal(git, *tip, request.pass.resource);
    if (!seal) return told(seal.error());
    RemoteFence standing{.oid = *tip, .fence = *seal, .unreadable = {}, .raw = {}};
    Refused why = refusal_at(target, standing);
    auto decision =
        judge_seal(*seal ? std::optional((*seal)->fence) : std::nullopt, request, fences, &why);
    if (!decision) return told(decision.error());
    if (decision->verdict != core::Verdict::Admitted) return SealAnswer(std::move(why));
    auto next = next_seal(standing, *decision, request, target);
    if (!next) return told(next.error());
    if (!*next) return SealAnswer(Sealed{.already = i == 0});
    auto commit = make_seal(git, *tip, **next);
    if (!commit) return told(commit.error());
    auto end = push_branch(git, place, *commit,
                           {"--no-verify", cat("--force-with-lease=", place.branch, ":", *tip)});
    if (!end) return told(end.error());
    if (end->fate == PushFate::Landed) return SealAnswer(Sealed{});
    last = std::move(*end);
    if (last.fate == PushFate::Unknown) lost = last;
    if (last.fate == PushFate::Unreached || last.fate == PushFate::Refused) break;
    os::pause_for(kBetweenTries * (i + 1));
  }
  return not_sealed(target, lost ? *lost : last);
}

Result<GitPushed> push_unfenced(const GitPush& push, const std::string& oid, Refused warned) {
  const Git git = Git::in(push.folder);
  auto url = push_url(git, push.target);
  if (!url) return url.error();
  warned.warned = true;
  GitPushed out{.answer = Written{.digest = oid},
                .target = canonical_git(push.target, *url),
                .oid = oid,
                .warned = std::move(warned)};
  if (push.dry_run) return out;
  auto end =
      push_branch(git, {push.target.remote, *url, push.target.branch, push.target.look}, oid, {});
  if (!end) return end.error();
  if (push.tell) push.tell(end->talk);
  if (end->fate == PushFate::Landed) return out;
  const Code code = end->fate == PushFate::Unknown     ? Code::UnknownOutcome
                    : end->fate == PushFate::Unreached ? Code::Unavailable
                                                       : Code::Failed;
  return Error{code, cat(quoted(out.target), ": the push did not succeed: ", end->why)};
}

Result<GitPushed> push_over_seals(const GitPush& push, const std::string& oid) {
  const Git git = Git::in(push.folder);
  auto url = push_url(git, push.target);
  if (!url) return url.error();
  const BranchPlace place{push.target.remote, *url, push.target.branch, push.target.look};
  const std::string name = canonical_git(push.target, *url);
  auto seal = highest_seal(git, oid, push.pass.resource);
  if (!seal) return seal.error();
  RemoteFence standing{.oid = oid, .fence = *seal, .unreadable = {}, .raw = {}};
  const Ours whose = *seal ? is_ours(**seal, push.pass) : Ours::No;
  if (whose == Ours::AnotherClaim) {
    return Error{Code::Failed, cat(quoted(name), ": ", kAnotherClaim, ". Nothing was changed.")};
  }
  if (whose != Ours::Yes) {
    Refused why = refusal_at(name, standing);
    const auto fence = *seal ? std::optional((*seal)->fence) : std::nullopt;
    const auto first = core::seal(fence, offer_of(push.pass, ""), std::nullopt);
    const bool raises = first.verdict == core::Verdict::AskStore || whose == Ours::ByOrder;
    if (raises) return stand_on_seal_first(push, place, name);
    why.verdict = first.verdict;
    why.offered = push.pass.token;
    why.fence = fence;
    why.detail = "what you push stands on that newer seal";
    return GitPushed{.answer = std::move(why), .target = name, .oid = {}};
  }
  GitPushed out{.answer = Written{.digest = oid}, .target = name, .oid = oid};
  if (push.dry_run) return out;
  auto end = push_branch(git, place, oid, {});
  if (!end) return end.error();
  if (push.tell) push.tell(end->talk);
  switch (end->fate) {
    case PushFate::Landed: return out;
    case PushFate::Unknown:
      return Error{Code::UnknownOutcome, cat(quoted(name), ": the push got no answer (", end->why,
                                             "). Push again: the same push twice does no harm")};
    case PushFate::Unreached: return unavailable(cat(quoted(name), " was not reached: ", end->why));
    case PushFate::Refused:
      return Error{Code::Failed, cat(quoted(name), ": the push was refused: ", end->why)};
    case PushFate::Moved:
    case PushFate::Locked:
    case PushFate::Conflict: break;
  }
  return Error{
      Code::Failed,
      cat("conflict: ", quoted(name), " has moved on (", end->why,
          "). Fetch and rebase, then push again; what a newer holder has sealed is refused "
          "then. Nothing was changed.")};
}

}  // namespace stint::guard
