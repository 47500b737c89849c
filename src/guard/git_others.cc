#include "guard/git_others.h"

#include <algorithm>

#include "base/text.h"
#include "guard/git_fence.h"

namespace stint::guard {
namespace {

bool same_branch(const std::string& one, const std::string& other) {
  const auto left = parse_git_target(one);
  const auto right = parse_git_target(other);
  return left && right && left->remote == right->remote && left->branch == right->branch;
}

}  // namespace

Result<std::optional<Refused>> refused_as_others(const Git& git, const std::string& url,
                                                 const std::string& target, const Pass& pass,
                                                 api::Fences& fences) {
  using None = std::optional<Refused>;
  const auto at = parse_git_target(target);
  if (!at || at->fallback == GitFallback::SealCommit) return None();
  const auto word = fences.word(pass.resource);
  if (!word) return word.error();
  if (memory_of(*word, target) == Memory::Sealed) return None();
  auto end = git.run({"ls-remote", "--", url, cat(at->fence_prefix, "*")});
  if (!end && end.error().code == Code::UnknownOutcome) return unavailable(end.error().message);
  if (!end) return end.error();
  if (!end->ok()) return unavailable(git_words(end->talk)).during("asking the git server");
  for (const std::string_view line : split(end->out, '\n')) {
    const std::size_t tab = line.find('\t');
    if (tab == line.npos) continue;
    const auto other = resource_of_fence_ref(at->fence_prefix, line.substr(tab + 1));
    if (!other || *other == pass.resource) continue;
    // A resource that we may not ask of is none that we could name.
    const auto sealed = fences.sealed(*other);
    if (!sealed ||
        std::ranges::none_of(*sealed, [&](const auto& one) { return same_branch(one, target); })) {
      continue;
    }
    Refused out;
    out.target = target;
    out.verdict = core::Verdict::Foreign;
    out.offered = pass.token;
    out.fence = core::Fence{.generation = pass.generation,
                            .resource = other->text(),
                            .token = Token(),
                            .used = false,
                            .key = "",
                            .digest = ""};
    return None(std::move(out));
  }
  return None();
}

}  // namespace stint::guard
