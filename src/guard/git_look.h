// Whether a server's word that a push is done is looked at.
//
// Git itself tells a push as done when it is. A forge puts machinery of its own around it, and one
// was seen to tell a failed atomic push as done (gitaly#5991, facts/git.md A3). So where the server
// may be more than git its refs are looked at once more, and what they do not show is *unknown*.
#pragma once

#include <optional>
#include <string_view>

namespace stint::guard {

enum class GitLook {
  ByServer,  // unless it can only be git
  Always,
  Never,
};

// "always" or "never".
std::optional<GitLook> parse_look(std::string_view word);
// Empty: ByServer.
std::string_view word(GitLook look);

// Whether nothing but git answers there: a path, file:// and git://. Whatever comes over ssh, HTTP
// or somebody's own transport may be a forge; that it says agent=git/... proves nothing.
bool is_plain_git(std::string_view url);
// `url`: where the push went to; empty: not known.
bool looks_at(GitLook look, std::string_view url);

constexpr std::string_view kNotShown =
    "the server told it as done, and its refs do not show it (gitaly#5991 is one such bug)";

}  // namespace stint::guard
