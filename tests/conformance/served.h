// A server in this process on what is given, and a client of it: the same verbs, over HTTP.
#pragma once

#include <memory>

#include "api/events.h"
#include "api/fences.h"
#include "api/leases.h"
#include "base/random.h"

namespace stint::testing {

class Served {
 public:
  virtual ~Served() = default;
  virtual api::Leases& leases() = 0;
  virtual api::Fences& fences() = 0;
  virtual api::Events& events() = 0;
};

// All must outlive it.
std::unique_ptr<Served> serve(api::Leases& leases, api::Fences& fences, api::Events& events,
                              Random& random, const Clock& clock);

}  // namespace stint::testing
