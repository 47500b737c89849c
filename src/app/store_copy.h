// `stint store copy FROM TO`.
#pragma once

#include <optional>

#include "app/opened.h"
#include "service/store_move.h"

namespace stint::app {

struct StoreCopy {
  OpenOptions from;
  OpenOptions to;
  std::optional<std::string> revoke_why;  // given: what is held is revoked first, for this reason
  std::string by;
};

Result<service::Moved> copy_store(const StoreCopy& copy, const Clock& clock, Random& random);

}  // namespace stint::app
