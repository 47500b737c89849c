// Refusals in words, the same on the command line and over HTTP: who, since when, until when, what
// they are doing. Never a command that would break another's lease.
#pragma once

#include <string>

#include "api/lease.h"

namespace stint::api {

// "'r' is held by 'host-a:4711' with token 3 since ..., for another 18 s unless renewed (until
// ...)"
std::string describe_holder(const Lease& lease, WallTime now);
std::string describe_loss(const Lost& lost, Token offered);

}  // namespace stint::api
