// A server that takes a fence and does not show it (uploadpack.hideRefs), or shows one that it does
// not let anybody move (receive.hideRefs). Its first holder would work from memory, and every
// successor would be locked out.
#pragma once

#include <string>

#include "guard/git_remote.h"

namespace stint::guard {

// What is the matter, and what helps; no sentence of what was changed.
std::string words_of_hidden(const std::string& ref);

// The first fence at its place, just pushed as `oid`: what the next holder will read is looked at.
// Where it is not shown it is taken back, and the error says whether that could be done.
Status check_shown(const GitRemote& remote, const std::string& target, const std::string& oid);

// A fence that was pushed there and is not shown: whether it could be taken back, in words.
std::string take_back_fence(const GitRemote& remote, const std::string& oid);

}  // namespace stint::guard
