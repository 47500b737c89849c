#include "guard/git_defaults.h"

#include "base/text.h"
#include "guard/git_here.h"

namespace stint::guard {
namespace {

Result<std::string> current_branch(const Git& git, bool plain) {
  constexpr std::string_view kNoBranch =
      "HEAD is on no branch: say what goes where, as in stint push origin HEAD:main";
  if (const auto at = find_plain_repository(plain)) {
    if (at->head.empty()) return invalid(std::string(kNoBranch));
    return at->head;
  }
  auto branch = git.run({"symbolic-ref", "--quiet", "HEAD"});
  if (!branch) return branch.error();
  if (branch->ok()) return std::string(trim(branch->out));
  return invalid(branch->talk.empty() ? std::string(kNoBranch) : git_words(branch->talk));
}

// What the user has configured for pushes, asked of git once.
class Settings {
 public:
  explicit Settings(const Git& git) {
    auto end = git.run({"config", "--null", "--get-regexp",
                        "^(remote\\.pushdefault|branch\\..*\\.(pushremote|remote|merge))$"});
    if (end && end->ok()) all_ = std::move(end->out);
  }
  // The last one counts; empty: not set. `key` with small letters but in the branch's name.
  std::string get(const std::string& key) const {
    std::string found;
    for (const std::string_view one : split(all_, '\0')) {
      const std::size_t end = one.find('\n');
      if (end != one.npos && one.substr(0, end) == key) found = std::string(one.substr(end + 1));
    }
    return found;
  }

 private:
  std::string all_;
};

std::string default_remote(const Settings& settings, const std::string& branch) {
  for (const std::string& key :
       {cat("branch.", branch, ".pushremote"), std::string("remote.pushdefault"),
        cat("branch.", branch, ".remote")}) {
    if (auto value = settings.get(key); !value.empty()) return value;
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

Result<WhereTo> where_to_push(const Git& git, const std::optional<std::string>& remote,
                              const std::optional<std::string>& ref, bool plain) {
  WhereTo out;
  const bool by_head = !ref || *ref == "HEAD";
  std::string current;
  if (by_head || !remote) {
    auto branch = current_branch(git, plain);
    if (!branch) return branch.error();
    current = *branch;
  }
  const std::string name = current.substr(current.rfind("refs/heads/", 0) == 0 ? 11 : 0);
  std::optional<Settings> settings;
  if (by_head || !remote) settings.emplace(git);
  out.target.remote = remote ? *remote : default_remote(*settings, name);
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
  if (settings->get(cat("branch.", name, ".remote")) == out.target.remote) {
    const std::string merge = settings->get(cat("branch.", name, ".merge"));
    if (merge.starts_with("refs/heads/")) out.target.branch = merge;
  }
  return out;
}

}  // namespace stint::guard
