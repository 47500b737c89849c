// The words of a refusal, for people and for programs: what happened, the token offered, the fence,
// who has the newest token, the target, and the safe next step. Never a recipe for getting around
// the fence: agents follow such recipes.
#pragma once

#include <string>

#include "base/error.h"
#include "guard/guard.h"

namespace stint::guard {

// The code of the outer contract. REQUIRES: a refusal, not Admitted, Done or AskStore.
Code code_of(core::Verdict verdict);

// "'file:/srv/index.html' refused token 7 of 'blog': it stands at token 8 ..."
Error error_of(const Refused& refused, const Pass& pass);

// {"error": {"code", "message", "cause", "target", "resource", "token", "fence", "owner"}}
std::string to_json(const Refused& refused, const Pass& pass);

}  // namespace stint::guard
