// `stint proxy`: the HTTP guard under its lease. One instance admits, others stand by.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "api/events.h"
#include "api/fences.h"
#include "api/leases.h"
#include "base/random.h"
#include "guard/http/proxy.h"
#include "guard/targets.h"
#include "os/signals.h"

namespace stint::app {

struct ProxyRun {
  guard::http::ProxyRequest proxy;
  Owner owner;
  Millis ttl{15'000};
  std::function<void(const std::string&)> say;
};

struct ProxyEnd {
  int signal = 0;                 // by which it was told to stop; 0: it lost its lease
  bool clean = true;              // all that it had let through was answered
  std::optional<api::Lost> lost;  // what the store said; empty: the deadline passed
  std::string trouble;
};

// What it asks of the store.
struct ProxyStore {
  api::Leases& leases;
  api::Fences& fences;
  api::Events& events;
};

// Returns when a signal tells it to stop, or when the lease is lost.
Result<ProxyEnd> run_proxy(const ProxyStore& store, const Clock& clock, Random& random,
                           os::Signals& signals, const ProxyRun& run);

guard::Guard proxy_guard();

}  // namespace stint::app
