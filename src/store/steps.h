// What is the same of a commit's steps in every store that judges them itself.
#pragma once

#include <vector>

#include "base/result.h"
#include "store/seam.h"

namespace stint::store {

// Code::Invalid: a record is too large. Too many steps are a bug of the caller.
Status check_sizes(const std::vector<Step>& steps);

// Whether a step finds the version that it expects; 0: there is no record.
bool finds_expected(const Step& step, Version version);

}  // namespace stint::store
