// The limits of a commit, the same in every store.
#pragma once

#include <vector>

#include "base/result.h"
#include "store/seam.h"

namespace stint::store {

// Code::Invalid: a record is too large. Too many steps are a bug of the caller.
Status check_sizes(const std::vector<Step>& steps);

}  // namespace stint::store
