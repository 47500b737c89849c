// `api` over HTTP: what `--store https://...` stands for. The face of a module: libcurl is not
// loaded at every start of the program.
//
// A request that certainly did not arrive is Unavailable. One that may have arrived is asked again
// where asking again is the same request (the same claim, order, token); if nobody answers still it
// is UnknownOutcome, and stays so. Thread safety: any thread.
#pragma once

#include <memory>
#include <string>

#include "api/events.h"
#include "api/fences.h"
#include "api/keys.h"
#include "api/leases.h"
#include "api/queue.h"
#include "api/slots.h"
#include "base/random.h"
#include "net/address.h"

namespace stint::client {

struct ConnectRequest {
  net::Address address;  // http:// or https://; options cacert, cert, key
  Millis timeout{5000};
  std::string key;  // empty: none
  std::optional<Generation> pinned;
  Random* random = nullptr;  // outlives the client
};

class Connected {
 public:
  virtual ~Connected() = default;
  virtual api::Leases& leases() = 0;
  virtual api::Fences& fences() = 0;
  virtual api::Events& events() = 0;
  virtual api::Keys& keys() = 0;
  virtual api::Queue& queue() = 0;
  virtual api::Slots& slots() = 0;
  virtual std::string caveat() const = 0;
};

using OpenedClient = Result<std::unique_ptr<Connected>>;
// Asks the server once, for what stands behind it.
OpenedClient connect(const ConnectRequest& request, const Clock& clock);

// The entry of the module; see store/module.h.
using ClientEntry = void(const ConnectRequest& request, const Clock& clock, OpenedClient* answer);
constexpr const char* kClientEntry = "stint_open_client";

}  // namespace stint::client
