// The services for one request that has an idempotency key: what each does is committed together
// with its answer (api/once.h). Verbs whose request has room for the key itself (a lease's, an
// item's) need none of these.
#pragma once

#include <functional>
#include <memory>

#include "api/events.h"
#include "api/fences.h"
#include "api/keys.h"
#include "api/slots.h"

namespace stint::api {

struct Keeping {
  std::unique_ptr<Fences> fences;
  std::unique_ptr<Events> events;
  std::unique_ptr<Keys> keys;
  std::unique_ptr<Slots> slots;
  std::function<Result<Token>(const ResourceName&)> forget;  // Leases::forget()
};

}  // namespace stint::api
