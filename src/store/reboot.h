// The reboot rule as arithmetic: what a timer is worth after the machine started anew.
//
// The boot-time clock starts at zero with each boot, and unsynced renewals of the last moments may
// be gone. So a timer that had not run out at the last time that the surviving log shows gets its
// full length again from the first opening under the new boot; one that had, stays fired. One mark
// per boot is written; no timer is.                                                              G3
// G4
#pragma once

#include <cstdint>
#include <vector>

#include "base/timer.h"

namespace stint::store {

struct Boot {
  Nanos first_open{0};  // on this boot's clock
  Nanos last_commit{
      0};  // the latest commit that survived; moves while this boot is the present one
};

// Boots in order; index 0 is the boot under which the store was made, the last is the present one.
using Boots = std::vector<Boot>;

struct StoredTimer {
  std::size_t boot = 0;  // under which it was started or extended
  Nanos fires_at{0};     // on that boot's clock
  Millis ttl{0};
};

// When it fires on the present boot's clock; a moment in the past if it had fired before.
Nanos fires_now(const StoredTimer& timer, const Boots& boots);

}  // namespace stint::store
