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
  // So many are decided, and committed, at once; what is beyond waits for them.
  static constexpr std::size_t kMostTogether = 256;
  using Tell = std::function<void(std::size_t ask, AskAnswer answer)>;
  using Pause = std::function<void()>;
  // Tells each answer once, in any order, and returns when all are told. What needs no disk sync is
  // told before what does: refusals, releases, and renewals where the store lets them go unsynced.
  // `pause` is called before anything that may have to wait, for the disk or for others: what was
  // told so far is to go out now. The next answer says that this is over. More than once.
  virtual void many(const std::vector<Ask>& asks, const Tell& tell, const Pause& pause) = 0;
  // Tells those from `first` on who are refused as things stand, on one reading: nothing is written
  // and no disk is waited for. Who is not told has to be asked for with many().
  virtual void look(const std::vector<Ask>& asks, std::size_t first, const Tell& tell) = 0;
};

}  // namespace stint::api
