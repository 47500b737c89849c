// `etcd://` for the conformance suite: one server for the whole test process, a prefix a site.
#pragma once

#include <memory>

#include "tests/conformance/stores.h"

namespace stint::testing {

std::unique_ptr<Site> make_etcd_site();

}  // namespace stint::testing
