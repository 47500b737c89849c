// A short command run on the side, with a limit.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"

namespace stint::os {

// `sh -c command` with this environment. False if it failed, had to be
// killed after `limit`, or nobody saw how it ended.
bool run_errand(const std::string& command, const std::vector<std::string>& environment,
                Millis limit);

// Stops this process as Ctrl-Z would; returns when it is continued.
void stop_self();

}  // namespace stint::os
