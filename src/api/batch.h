// Several verbs of several callers at once: what a server gathers while the store is busy with the
// last of them. Each is decided and answered by itself, as api/leases.h says.
#pragma once

#include <functional>
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
  using Tell = std::function<void(std::size_t ask, AskAnswer answer)>;
  // Tells each answer once, in any order, and returns when all are told. A refusal is told before
  // the store writes what the others want: it waits for no disk.
  virtual void many(const std::vector<Ask>& asks, const Tell& tell) = 0;
};

}  // namespace stint::api
