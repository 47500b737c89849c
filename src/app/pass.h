// What a writer shows at a guard (guard::Pass), from the command line, the environment of a `run`
// and what `acquire` left on this machine. Every guard's command and the library use this one.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "api/leases.h"
#include "app/environment.h"
#include "guard/guard.h"

namespace stint::app {

// What the environment knows of one resource: STINT_RESOURCE and its like of the innermost run,
// else STINT_HELD. Empty: nothing.
struct Known {
  Token token;
  std::optional<Generation> generation;
  std::optional<Claim> claim;
};
Result<std::optional<Known>> known_of(const Environment& environment, const ResourceName& resource);

// As they were given; empty: not given.
struct PassWords {
  std::optional<std::string> resource;  // --resource; else STINT_RESOURCE
  std::optional<std::string> token;     // --token; else what STINT_HELD says of the resource
  std::optional<std::string> mode;      // --mode once
  std::optional<std::string> key;       // --key
  std::optional<std::string> owner;     // --owner; else STINT_OWNER
  bool require_live = false;            // --require-live
};

// Asked only for what the environment does not know: inside a `run` no store is opened for a pass.
struct PassSources {
  std::function<Result<Generation>()> generation;
  std::function<Result<std::optional<api::Grip>>(const ResourceName&, Token)> claim;
};

// STINT_GUARD=warn. Errors: Code::Invalid for any other word than warn and refuse.
Result<bool> guard_warns(const Environment& environment);

// A pass without a token is NOT an error: the guard refuses it where the target is fenced.
// Errors: Code::Invalid for words or an environment that make no sense.
Result<guard::Pass> pass_of(const Environment& environment, const PassWords& words,
                            const PassSources& sources);

}  // namespace stint::app
