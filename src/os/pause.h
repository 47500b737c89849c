// The only sleeps of the program: short ones between tries, where nothing can be waited on.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"

namespace stint::os {

void pause_for(Nanos length);

// Waits until one of the descriptors is readable, or until `until` (on the boot-time clock: a
// suspend counts). Says which are readable.
std::vector<bool> wait_readable(const std::vector<int>& fds, std::optional<MonoTime> until);

}  // namespace stint::os
