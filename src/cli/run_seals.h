// What every verb that starts work does between the grant and the start: `run`, a slot of `cron`,
// `once`, `admit`, `work --with`. Seal, then read, then write: each resource that is really taken
// seals its own targets, by the one function below.   G5
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/events.h"
#include "api/fences.h"
#include "api/leases.h"
#include "cli/command.h"
#include "cli/session.h"
#include "guard/targets.h"
#include "holder/run.h"

namespace stint::cli {

constexpr Option kSealOption = {
    "--seal", "[R=]TARGET",
    "seal this target before the command starts; later runs do so again. Of several resources it "
    "is the first one's, unless R= says whose",
    true};
constexpr Option kNoSealOption = {"--no-seal", "",
                                  "do not seal again what earlier runs have sealed"};

// What is to be sealed, as it was named before anything was taken.
struct SealPlan {
  struct Wanted {
    std::string resource;  // whose; empty: the one that is taken, of several the first named
    guard::Target target;
    bool settled = true;  // false: its words are settled once its resource is taken
  };
  std::vector<Wanted> wanted;
  bool again = true;  // also what earlier holders have sealed (not with --no-seal)
};

struct MayTake {
  std::vector<ResourceName> together;     // at once
  std::vector<ResourceName> others = {};  // --or: or else one of these
};

// `texts` (--seal, a job's own), and the configuration's [seal] of every resource that may be
// taken. Errors: whatever is wrong with them that can be known before anything is acquired.
Result<SealPlan> plan_seals(Session& session, const MayTake& may,
                            const std::vector<std::string>& texts);

// One lease that work is about to start under.
struct UnderLease {
  guard::Pass pass;
  bool leads = false;                // what was named without a resource is its
  std::vector<std::string> sealed;   // what is remembered for it (api::Granted)
  std::vector<std::string> sealing;  // what of that is only about to be sealed
};
// Of all that was taken. `first`: the resource that was named first.
std::vector<UnderLease> under_leases(const holder::Taken& taken, const ResourceName& first,
                                     const Owner& owner, const Generation& generation);

// Must outlive the steps.
struct SealWorld {
  api::Fences& fences;
  api::Events& events;
  api::Leases& leases;
  const Clock& clock;
  std::function<void(const std::string&)> say;  // of each that was sealed; may be empty
};
SealWorld seal_world(Session& session, app::Opened& opened);

// For each lease: one step remembers what was not known, one seals each target, one tells. None: no
// steps, and nothing was read for it. A step that fails has recorded that the work was refused.
std::vector<holder::SealStep> seal_steps(const SealWorld& world, const SealPlan& plan,
                                         const std::vector<UnderLease>& leases);

}  // namespace stint::cli
