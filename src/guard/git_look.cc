#include "guard/git_look.h"

namespace stint::guard {

std::optional<GitLook> parse_look(std::string_view word) {
  if (word == "always") return GitLook::Always;
  if (word == "never") return GitLook::Never;
  return std::nullopt;
}

std::string_view word(GitLook look) {
  switch (look) {
    case GitLook::ByServer: return "";
    case GitLook::Always: return "always";
    case GitLook::Never: return "never";
  }
  return "";
}

bool is_plain_git(std::string_view url) {
  if (url.empty()) return false;
  // "ext::sh -c ..." and the like: somebody's program.
  if (url.find("::") != url.npos) return false;
  if (url.find("://") != url.npos) return url.starts_with("file://") || url.starts_with("git://");
  // "host:path", as git tells it from a path.
  const std::size_t colon = url.find(':');
  return colon == url.npos || url.substr(0, colon).find('/') != url.npos;
}

bool looks_at(GitLook look, std::string_view url) {
  switch (look) {
    case GitLook::Always: return true;
    case GitLook::Never: return false;
    case GitLook::ByServer: break;
  }
  return !is_plain_git(url);
}

}  // namespace stint::guard
