// What is done at the targets between the grant and the start of the work, whichever verb starts
// it: seal, then read, then write. The leases are renewed meanwhile.   G5
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "holder/keeper.h"

namespace stint::holder {

// One step of it. An error ends the work before it was started.
using SealStep = std::function<Status()>;

struct SealEnd {
  KeeperState state;  // other than Holding: the lease was lost meanwhile, and nothing is started
  std::optional<int> interrupted = {};  // by this signal
};

// Takes the steps in this order. They may take long (a push to a slow server may outlast the ttl):
// `keeper` renews on a thread of its own, and is the caller's again afterwards. `renewed` is called
// on that thread, `ending_signal` after each step.
// Errors: the first step's that failed, while the lease is still ours.
Result<SealEnd> take_steps(const std::vector<SealStep>& steps, Keeper& keeper,
                           const std::function<void()>& renewed,
                           const std::function<std::optional<int>()>& ending_signal);

}  // namespace stint::holder
