// `stint guard check` of a file or a directory: the fence that stands beside it, what crashed
// writers left, and whether git would carry the fence files.
#pragma once

#include <vector>

#include "guard/targets.h"

namespace stint::guard {

// Reads names only, and changes nothing. Errors: the directory cannot be read.
Result<std::vector<CheckLine>> check_path(const Target& target, api::Fences* fences);

}  // namespace stint::guard
