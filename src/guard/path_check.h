// `stint guard check` of a file or a directory: the fence that stands beside it, what crashed
// writers left, and whether git would carry the fence files.
#pragma once

#include <vector>

#include "guard/targets.h"

namespace stint::guard {

// Reads names only, and changes nothing. Errors: the directory cannot be read.
Result<std::vector<CheckLine>> check_path(const Target& target, api::Fences* fences);

// What a guard has beside the artifact.
struct PathGuardRemoved {
  std::size_t files = 0;
  std::string resource = {};  // whose fence it was; empty: none, or unreadable
};
// Takes it all away: stages first, so that none can be put in place past a fence that is gone. A
// folder that is not there has nothing in it.
Result<PathGuardRemoved> uninstall_path(const Target& target);

// Whether a fence of this pass may stand there, after a seal of it failed.
bool may_stand_at(const Target& target, const Pass& pass);

}  // namespace stint::guard
