// Whose branch it is. A repository has a fence for each resource that guards something there, and
// the fence does not say which branch: that the store remembers. A branch that a standing fence's
// resource has sealed is that resource's, and a seal or a first push under another is refused, as
// at a file. G5
//
// Two that seal for the first time at the same moment both get in; with the hook the branch is
// bound to one of them. Fences of another store, and --fallback seal-commit, are not looked at.
#pragma once

#include "guard/git_target.h"
#include "guard/guard.h"

namespace stint::guard {

// The refusal, if it is another resource's. What this one has sealed is its own: one question to
// the store. Else one to the server as well, and one to the store for each other resource that has
// a fence there. Errors: store or server could not be asked.
Result<std::optional<Refused>> refused_as_others(const Git& git, const std::string& url,
                                                 const std::string& target, const Pass& pass,
                                                 api::Fences& fences);

}  // namespace stint::guard
