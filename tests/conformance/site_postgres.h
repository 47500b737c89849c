// A site in a real PostgreSQL server: one server for the whole test program, a schema for each
// site.
#pragma once

#include <memory>

#include "tests/conformance/stores.h"

namespace stint::testing {

std::unique_ptr<Site> make_postgres_site();

}  // namespace stint::testing
