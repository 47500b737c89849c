// A server in this process on what is given, and a client of it: the same verbs, over HTTP.
#pragma once

#include <memory>

#include "api/events.h"
#include "api/fences.h"
#include "api/leases.h"
#include "api/queue.h"
#include "api/slots.h"
#include "base/random.h"

namespace stint::testing {

class Served {
 public:
  virtual ~Served() = default;
  virtual api::Leases& leases() = 0;
  virtual api::Fences& fences() = 0;
  virtual api::Events& events() = 0;
  virtual api::Queue& queue() = 0;
  virtual api::Slots& slots() = 0;
};

// What is served; what is null is not asked for. All must outlive it.
struct Behind {
  api::Leases& leases;
  api::Fences& fences;
  api::Events& events;
  api::Queue* queue = nullptr;
  api::Slots* slots = nullptr;
};
std::unique_ptr<Served> serve(const Behind& behind, Random& random, const Clock& clock);

}  // namespace stint::testing
