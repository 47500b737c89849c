// Reading through many leases or events, page by page, for commands that show them all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/events.h"
#include "api/leases.h"

namespace stint::app {

// All leases under a prefix, sorted by name.
Result<std::vector<api::Lease>> all_leases(api::Leases& leases, const std::string& prefix);

// Every event under a prefix from `after` on (empty: from now), as it is committed, until a signal
// comes or `show` says no.
Status follow(api::Events& events, const std::string& prefix, std::string after,
              const std::function<bool(const api::Event&)>& show);

}  // namespace stint::app
