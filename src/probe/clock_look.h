// How a store's clock stands to this machine's: skew at a moment, drift between two.
//
// A store tells its time somewhere between the question and the answer: it is compared with the
// middle of the two, and half the round trip is how far that can be off.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "store/seam.h"

namespace stint::probe {

struct ClockLook {
  MonoTime at{};                    // here, in the middle of the round trip
  Nanos store_time{0};              // there
  std::optional<Nanos> ahead = {};  // the store's wall clock before ours; none: it has none
  Nanos bound{0};                   // half the round trip
};

// The quickest of a few reads of the key; nothing: the store tells no time.
Result<std::optional<ClockLook>> look_at_clock(store::Store& store, const std::string& key,
                                               const Clock& clock);

// Nobody's lease depends on it; what people are shown and what schedules mean does.
store::Finding skew_finding(const ClockLook& look);

// Holders allow for a thousandth (G6): a store's clock that gains more ends leases before they
// expect it.
store::Finding drift_finding(const ClockLook& first, const ClockLook& last);

}  // namespace stint::probe
