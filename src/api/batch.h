// Several verbs of several callers at once: what a server gathers while the store is busy with the
// last of them. Each is decided and answered by itself, as api/leases.h says.
#pragma once

#include <variant>
#include <vector>

#include "api/leases.h"

namespace stint::api {

struct Renewal {
  Grip grip;
  Millis ttl{0};
};
struct Ending {
  Grip grip;
};
using Ask = std::variant<AcquireRequest, Renewal, Ending>;
using AskAnswer = std::variant<Result<AcquireAnswer>, Result<HoldAnswer>>;

class BatchedLeases {
 public:
  virtual ~BatchedLeases() = default;
  virtual std::vector<AskAnswer> many(const std::vector<Ask>& asks) = 0;
};

}  // namespace stint::api
