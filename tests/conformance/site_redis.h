// Where the Redis store lives in the conformance suite.
#pragma once

#include <memory>

#include "tests/conformance/stores.h"

namespace stint::testing {

// One server for the whole process (appendfsync always); each site has a prefix of its own.
std::unique_ptr<Site> make_redis_site();

}  // namespace stint::testing
