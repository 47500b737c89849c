// Where `stint push [REMOTE [REF]]` goes when not all of it is said: as `git push` would.
#pragma once

#include <optional>
#include <string>

#include "guard/git_target.h"

namespace stint::guard {

struct WhereTo {
  GitTarget target;
  std::string source;
};

// REF: BRANCH, SOURCE:BRANCH, or a full name (refs/heads/…, refs/tags/…); default the current
// branch. REMOTE: the current branch's, else origin. `plain`: git_here.h; only of where we are.
Result<WhereTo> where_to_push(const Git& git, const std::optional<std::string>& remote,
                              const std::optional<std::string>& ref, bool plain = false);

}  // namespace stint::guard
