// Taking leases before the work starts: several at once, all or nothing, and what to do when one is
// held.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "api/leases.h"
#include "base/random.h"
#include "core/holder_policy.h"
#include "holder/keeper.h"

namespace stint::holder {

enum class OnHeld {
  Skip,   // wave off
  Wait,   // until it is free, or for `patience`
  Retry,  // look again every `interval`
  Fail,
};

struct HeldPolicy {
  OnHeld what = OnHeld::Skip;
  std::optional<Millis> patience;  // Wait: empty: for ever
  Millis interval{5000};           // Retry
};

// "skip", "wait", "wait=30s", "retry", "retry=5s", "fail".
Result<HeldPolicy> parse_held_policy(std::string_view text);

struct TakeRequest {
  // Sets to try, in order; each is taken as a whole, in sorted order. The first that is free wins.
  std::vector<std::vector<ResourceName>> choices;
  Owner owner;
  core::Terms terms;
  std::string note;
  HeldPolicy held;
  bool count_refusal = false;  // the first refusal goes to the ledger as one
};

struct Taken {
  std::vector<Kept> kept;
  std::vector<api::Granted> grants;  // beside `kept`, one each
  // Those that were waited on; of use to whoever goes on watching. Closing one takes the kernel 10
  // ms, which nobody should spend between a grant and the start of the work.
  std::vector<std::unique_ptr<Watch>> watches;
};
// Of the grant itself: a service may have been opened in an earlier life of the store. What an
// ancestor lends has no grant here.
inline const Generation& generation_of(const Taken& taken, const Kept& kept,
                                       const Generation& lent) {
  const auto at = static_cast<std::size_t>(&kept - taken.kept.data());
  return at < taken.grants.size() ? taken.grants[at].lease.generation : lent;
}

struct WavedOff {
  api::Refused by;  // of the last choice that was tried
  Millis waited{0};
};
struct Interrupted {
  int signal = 0;
};
using TakeAnswer = std::variant<Taken, WavedOff, Interrupted>;

// What waiting looks at besides the store: signals. Returns the signal if one came.
struct Interruptions {
  int fd = -1;
  std::function<std::optional<int>()> take;
};

// `say` is called once when the waiting begins, with who is in the way.
Result<TakeAnswer> take(api::Leases& leases, const Clock& clock, Random& random,
                        const TakeRequest& request, const Interruptions& interruptions,
                        const std::function<void(const api::Refused&)>& say);

}  // namespace stint::holder
