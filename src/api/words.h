// Refusals in words, the same on the command line and over HTTP: who, since when, until when, what
// they are doing. Never a command that would break another's lease.
#pragma once

#include <string>

#include "api/lease.h"
#include "api/queue.h"

namespace stint::api {

// "'r' is held by 'host-a:4711' with token 3 since ..., for another 18 s unless renewed (until
// ...)"
std::string describe_holder(const Lease& lease, WallTime now);
std::string describe_loss(const Lost& lost, Token offered);
// No epoch offered: an operator's verb.
std::string describe_loss(const ItemLost& lost, const core::ItemId& id, Token offered);

}  // namespace stint::api
