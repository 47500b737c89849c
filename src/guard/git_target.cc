#include "guard/git_target.h"

#include <algorithm>

#include "base/text.h"
#include "os/files.h"

namespace stint::guard {
namespace {

constexpr std::string_view kScheme = "git:";

bool bad_ref_part(std::string_view part) {
  return part.empty() || part.front() == '.' || part.ends_with(".lock") || part.ends_with('.');
}

bool is_valid_ref(std::string_view ref) {
  if (ref.size() > 200 || ref.find("..") != ref.npos || ref.find("@{") != ref.npos || ref == "@" ||
      has_control(ref) || !is_utf8(ref)) {
    return false;
  }
  if (ref.find_first_of(" ~^:?*[\\+") != ref.npos || ref.front() == '-') return false;
  const auto parts = split(ref, '/');
  return std::ranges::none_of(parts, bad_ref_part);
}

// "scheme://…" or "host:path", as git tells them from paths.
bool is_remote_url(std::string_view text) {
  if (text.find("://") != text.npos) return true;
  const std::size_t colon = text.find(':');
  return colon != text.npos && text.substr(0, colon).find('/') == text.npos;
}

Status take_options(std::string_view& words, GitTarget& target) {
  while (true) {
    const std::size_t at = words.rfind(';');
    if (at == words.npos) return {};
    const std::string_view option = words.substr(at + 1);
    if (option.starts_with("fence=")) {
      target.fence_prefix = std::string(option.substr(6));
      if (auto ok = check_fence_prefix(target.fence_prefix); !ok) return ok;
    } else if (option == "fallback=seal-commit") {
      target.fallback = GitFallback::SealCommit;
    } else if (const auto look = parse_look(option.starts_with("look=") ? option.substr(5) : "")) {
      target.look = *look;
    } else {
      return invalid(cat(quoted(option),
                         " is no option of a git target: fence=PREFIX, fallback=seal-commit, "
                         "look=always or look=never"));
    }
    words = words.substr(0, at);
  }
}

}  // namespace

Result<std::string> full_branch(std::string_view name) {
  if (name.starts_with('+')) {
    return invalid(cat(quoted(name), ": a fenced push is never forced; take the '+' away"));
  }
  if (name.empty() || !is_valid_ref(name))
    return invalid(cat(quoted(name), " is not the name of a branch"));
  if (name.starts_with("refs/heads/") || name.starts_with("refs/tags/")) return std::string(name);
  if (name.starts_with("refs/")) {
    return invalid(cat(quoted(name), " is neither a branch (refs/heads/) nor a tag (refs/tags/)"));
  }
  return cat("refs/heads/", name);
}

Result<GitTarget> parse_git_target(std::string_view words) {
  if (words.starts_with(kScheme)) words.remove_prefix(kScheme.size());
  GitTarget target;
  const std::string whole(words);
  if (auto ok = take_options(words, target); !ok) return ok.error();
  std::string_view branch;
  if (const std::size_t hash = words.rfind('#'); hash != words.npos) {
    target.remote = std::string(words.substr(0, hash));
    branch = words.substr(hash + 1);
  } else {
    const std::size_t slash = words.find('/');
    target.named = true;
    target.remote = std::string(words.substr(0, slash));
    branch = slash == words.npos ? std::string_view() : words.substr(slash + 1);
    if (target.remote.find(':') != target.remote.npos) target.remote.clear();
  }
  if (target.remote.empty() || target.remote.front() == '-' || branch.empty()) {
    return invalid(cat(quoted(whole),
                       " is no git target: write git:REMOTE/REF (a remote of this repository) or "
                       "git:URL#BRANCH"));
  }
  auto full = full_branch(branch);
  if (!full) return full.error();
  target.branch = *full;
  return target;
}

Result<std::string> push_url(const Git& git, const GitTarget& target) {
  std::string url = target.remote;
  if (target.named) {
    auto end = git.run({"remote", "get-url", "--push", "--all", "--", target.remote});
    if (!end) return end.error();
    if (!end->ok()) {
      return invalid(
          cat("there is no remote ", quoted(target.remote), " here (", git_words(end->talk), ")"));
    }
    url = std::string(trim(end->out));
    if (url.find('\n') != url.npos) {
      return invalid(cat("the remote ", quoted(target.remote),
                         " has several push URLs: one push would be several, each with a fence of "
                         "its own. Name one of them as git:URL#BRANCH"));
    }
  }
  return is_remote_url(url) ? url : git.from_here(url);
}

std::string remote_with_url(const Git& git, const std::string& url) {
  constexpr std::string_view kPush = " (push)";
  auto end = git.run({"remote", "-v"});
  if (!end || !end->ok()) return {};
  std::string found;
  for (std::string_view line : split(end->out, '\n')) {
    if (!line.ends_with(kPush)) continue;
    line.remove_suffix(kPush.size());
    const std::size_t tab = line.find('\t');
    if (tab == line.npos) continue;
    const std::string_view name = line.substr(0, tab);
    const std::string there(line.substr(tab + 1));
    if (name == found) return {};  // several push URLs: none of them alone is that remote
    if ((is_remote_url(there) ? there : git.from_here(there)) == url) found = std::string(name);
  }
  return found;
}

std::string without_password(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos) return std::string(url);
  const std::size_t from = scheme + 3;
  const std::size_t end = std::min(url.find('/', from), url.size());
  const std::size_t at = url.substr(0, end).rfind('@');
  if (at == url.npos || at < from) return std::string(url);
  const std::size_t colon = url.find(':', from);
  if (colon == url.npos || colon > at) return std::string(url);
  return cat(url.substr(0, colon), url.substr(at));
}

std::string canonical_git(const GitTarget& target, const std::string& url) {
  std::string out = cat(kScheme, without_password(url), "#", target.branch);
  if (target.fence_prefix != kFencePrefix) out += cat(";fence=", target.fence_prefix);
  if (target.fallback == GitFallback::SealCommit) out += ";fallback=seal-commit";
  if (target.look != GitLook::ByServer) out += cat(";look=", word(target.look));
  return out;
}

bool same_fence(std::string_view one, std::string_view other) {
  const auto left = parse_git_target(one);
  const auto right = parse_git_target(other);
  if (!one.starts_with(kScheme) || !other.starts_with(kScheme) || !left || !right) return false;
  if (left->remote != right->remote || left->fallback != right->fallback) return false;
  if (left->fallback == GitFallback::SealCommit) return left->branch == right->branch;
  return left->fence_prefix == right->fence_prefix;
}

}  // namespace stint::guard
