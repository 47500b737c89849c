#include "guard/git_defaults.h"

#include "base/text.h"

namespace stint::guard {
namespace {

Result<std::string> current_branch(const Git& git) {
  auto branch = git.run({"symbolic-ref", "--quiet", "HEAD"});
  if (!branch) return branch.error();
  if (branch->ok()) return std::string(trim(branch->out));
  if (branch->talk.empty()) {
    return invalid("HEAD is on no branch: say what goes where, as in stint push origin HEAD:main");
  }
  return invalid(git_words(branch->talk));
}

std::string setting(const Git& git, const std::string& key) {
  auto end = git.run({"config", "--get", key});
  return end && end->ok() ? std::string(trim(end->out)) : std::string();
}

std::string default_remote(const Git& git, const std::string& branch) {
  for (const std::string& key :
       {cat("branch.", branch, ".pushRemote"), std::string("remote.pushDefault"),
        cat("branch.", branch, ".remote")}) {
    if (auto value = setting(git, key); !value.empty()) return value;
  }
  return "origin";
}

Status whole_ref(std::string_view ref, WhereTo& out) {
  const std::size_t colon = ref.find(':');
  if (ref.starts_with('+'))
    return invalid(cat(quoted(ref), ": a fenced push is never forced; take the '+' away"));
  if (colon == 0) {
    return invalid(cat(quoted(ref), " would delete a branch; a fenced push never does"));
  }
  const std::string_view branch = colon == ref.npos ? ref : ref.substr(colon + 1);
  auto full = full_branch(branch);
  if (!full) return full.error();
  out.target.branch = *full;
  out.source = colon == ref.npos ? *full : std::string(ref.substr(0, colon));
  return {};
}

}  // namespace

Result<WhereTo> where_to_push(const std::optional<std::string>& remote,
                              const std::optional<std::string>& ref) {
  const Git git;
  WhereTo out;
  const bool by_head = !ref || *ref == "HEAD";
  std::string current;
  if (by_head || !remote) {
    auto branch = current_branch(git);
    if (!branch) return branch.error();
    current = *branch;
  }
  const std::string name = current.substr(current.rfind("refs/heads/", 0) == 0 ? 11 : 0);
  out.target.remote = remote ? *remote : default_remote(git, name);
  if (out.target.remote.empty() || out.target.remote.front() == '-')
    return invalid(cat(quoted(out.target.remote), " is no remote"));
  out.target.named = out.target.remote.find_first_of("/:") == std::string::npos;
  if (!by_head) {
    if (auto ok = whole_ref(*ref, out); !ok) return ok.error();
    return out;
  }
  out.source = current;
  out.target.branch = current;
  // The upstream may have another name.
  if (setting(git, cat("branch.", name, ".remote")) == out.target.remote) {
    const std::string merge = setting(git, cat("branch.", name, ".merge"));
    if (merge.starts_with("refs/heads/")) out.target.branch = merge;
  }
  return out;
}

}  // namespace stint::guard
