// A log: store in a fresh directory. It belongs to one process at a time: within this one every
// opening shares it, and of several processes each waits until the one before has closed it.
#pragma once

#include <memory>

#include "tests/conformance/stores.h"

namespace stint::testing {

std::unique_ptr<Site> make_log_site();

}  // namespace stint::testing
