// Which guards this program has: one line each. And what a guard's refusal leaves on record.
#pragma once

#include <string>
#include <vector>

#include "api/events.h"
#include "api/fences.h"
#include "guard/targets.h"

namespace stint::app {

guard::Guards guards();

// Writes a guard's refusal into the ledger: the token offered, the fence, the owner, the target.
// An error is not the caller's: the write was refused either way.
Status record_refusal(api::Events& events, const Clock& clock, const guard::Refused& refused,
                      const guard::Pass& pass);

// What became of one target.
struct SealReport {
  enum class Outcome {
    Sealed,
    Newer,       // a newer token than ours stands there: nothing older lands
    Refused,     // see `error`
    NotReached,  // or not supported here
    Unknown,
  };
  std::string target;
  Outcome outcome = Outcome::NotReached;
  Error error;            // why not
  bool was_none = false;  // sealed, and no fence at all had stood there
  bool surely_failed = false;
  bool shut() const { return outcome == Outcome::Sealed || outcome == Outcome::Newer; }
};

// Seals one target, and records a refusal.
SealReport seal_target(const guard::Guards& guards, const std::string& words,
                       const guard::SealRequest& request, api::Fences& fences, api::Events& events,
                       const Clock& clock);

// A target that this process said it was about to seal, and whose seal has failed for certain: the
// word is struck, so that later runs do not fail there. True: so it was. What somebody else had
// said before stays a duty: that one may have made its fence without having told. G5
bool strike(const guard::SealRequest& request, SealReport& report, api::Fences& fences);

// transfer and revoke: every target that is remembered for the resource is sealed with the order's
// own token. An error: the list could not be read.
Result<std::vector<SealReport>> seal_by_order(const guard::Guards& guards,
                                              const ResourceName& resource, Token token,
                                              const Generation& generation, api::Fences& fences,
                                              api::Events& events, const Clock& clock);

}  // namespace stint::app
