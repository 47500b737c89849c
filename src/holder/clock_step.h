// The store's clock was set against ours: how that is told.   G4
#pragma once

#include <string>

#include "api/events.h"
#include "base/names.h"
#include "base/time.h"

namespace stint::holder {

// For people. `by`: how much more time passed there than here; less than zero: less.
std::string clock_step_line(Millis by);

// For the ledger, at the lease whose holder saw it.
struct StepSeen {
  WallTime at{};
  ResourceName resource;
  Token token;
  Owner owner;
  Millis by{0};
};
api::Event clock_step_event(const StepSeen& seen);

}  // namespace stint::holder
