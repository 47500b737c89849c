// `do:` for the conformance suite: one workerd for the whole test process, an object a site.
#pragma once

#include <memory>

#include "tests/conformance/stores.h"

namespace stint::testing {

std::unique_ptr<Site> make_do_site();

}  // namespace stint::testing
