// A place where a dir: store lives, for the conformance suite.
#pragma once

#include "tests/conformance/stores.h"

namespace stint::testing {

std::unique_ptr<Site> make_dir_site();

}  // namespace stint::testing
