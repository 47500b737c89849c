// `do:` for the conformance suite: one workerd for the whole test process, an object a site.
#pragma once

#include <memory>
#include <string>

#include "tests/conformance/stores.h"

namespace stint::testing {

std::unique_ptr<Site> make_do_site();
// Why there can be none; empty: there can.
std::string do_site_missing();

}  // namespace stint::testing
