// How long a commit is tried again, and what its outcome is called when the store fell silent.
#pragma once

#include "base/error.h"
#include "base/timer.h"
#include "store/seam.h"

namespace stint::service {

// Each conflict means that somebody else got on; this many in a row means that something is wrong.
constexpr int kMostTries = 1000;
constexpr int kMostUnknowns = 3;  // of a commit that got no answer
constexpr std::size_t kPage = 500;

// An outcome that is unknown stays so when the question that would settle it fails as well.
inline Error unsettled(Error error, int unknowns) {
  if (unknowns > 0) error.code = Code::UnknownOutcome;
  return error;
}

// The commit fails if the timer is no longer as it was seen.
inline void demand(store::Step& step, const Timer& seen) {
  if (seen.state != TimerState::None) step.demand = seen.state;
}

}  // namespace stint::service
