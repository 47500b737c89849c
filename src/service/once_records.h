// Answers that are kept for who asks again with the same idempotency key (api/once.h): one record
// `once/K`, written in the same commit as what was done, with a timer; sweep_once() removes those
// whose timer has fired.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/lease.h"
#include "api/once.h"
#include "store/seam.h"

namespace stint::service {

std::string once_key(const api::Once& once);

struct KeptAnswer {
  std::string digest;
  WallTime at{};
  std::optional<api::Granted> granted;  // one of the two
  std::optional<api::Held> held;
};

// Expects that nobody has used the key.
store::Step keep_answer(const api::Once& once, const KeptAnswer& answer);
Result<KeptAnswer> decode_kept(std::string_view value);

Status sweep_once(store::Store& store);

}  // namespace stint::service
