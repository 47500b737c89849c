// `stint guard check git:…`: what this server can do for a fence, tried with a scratch fence.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "guard/targets.h"

namespace stint::guard {

// Makes, moves and takes away one scratch fence; touches no branch. Errors: the words make no
// sense, or git is missing; what the server cannot do is a finding.
Result<std::vector<CheckLine>> probe_git(const std::string& words);

}  // namespace stint::guard
