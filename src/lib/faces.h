// From the inner types to those of the public headers.
#pragma once

#include "api/lease.h"
#include "stint/lease.h"
#include "stint/outcome.h"

namespace stint::lib {

Lease face(const api::Lease& lease);
Refused face(const api::Refused& refused);
// offered: the token that the caller showed.
Lost face(const api::Lost& lost, Token offered);
Outcome<Lease, Lost> face(const Result<api::HoldAnswer>& answer, Token offered);

}  // namespace stint::lib
