// The HTTP guard: a reverse proxy that lets a request through to its upstream only with a token
// that is not behind the fence, and a newer token's first one only when nothing older is under way.
//
// This is the face of a module: Boost is not loaded at every start of the program. Who admits is
// decided outside: `app` holds the lease and says until when it holds.
// Thread safety: any thread, but stop() and the destruction, which are one thread's.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/fences.h"
#include "base/time.h"
#include "base/watch.h"
#include "guard/guard.h"
#include "guard/targets.h"
#include "net/http/server.h"

namespace stint::guard::http {

struct ProxyRequest {
  net::http::Endpoint listen;
  net::http::Endpoint upstream;
  std::optional<ResourceName> resource;  // empty: each request names its own
  Millis drain{30'000};
  bool cut = false;                 // narrow, not zero
  bool guard_safe_methods = false;  // also GET, HEAD and OPTIONS need a token
  bool warn = false;                // what would be refused passes, and is told. NOT safe
  net::http::Limits limits;
  api::Fences* fences = nullptr;  // outlives the proxy
  // Tells of changes of a resource, as the watch of leases does. Empty: the store is asked at each
  // request.
  std::function<Result<std::unique_ptr<Watch>>(const ResourceName&)> watch;
  // A refusal, for the ledger. On a worker's thread.
  std::function<void(const Refused&, const Pass&)> refused;
};

class Proxy {
 public:
  virtual ~Proxy() = default;
  virtual std::uint16_t port() const = 0;
  // It may admit until then. The first call ends its standing by.
  virtual void hold_until(MonoTime deadline) = 0;
  // It admits nothing more, at once and for good; what is under way is cut.
  virtual void retire() = 0;
  // Takes nothing new, and waits so long for what is under way. True: all of it was answered.
  virtual bool stop(Millis patience) = 0;
};

// Where a seal is asked for.
constexpr const char* kSealPath = "/.well-known/stint/seal";
constexpr const char* kReadyPath = "/.well-known/stint/ready";

using OpenedProxy = Result<std::unique_ptr<Proxy>>;
OpenedProxy open_proxy(const ProxyRequest& request, const Clock& clock);

// `seal proxy:URL`: asks the proxy at the URL. It answers when the fence is raised and nothing
// older is under way any more. (Raising the fence in the store past the proxy would not reach what
// it has let through already.)
struct ProxySeal {
  std::string url;  // of the proxy
  SealRequest request;
  Millis timeout{120'000};
};
using ProxySealAnswer = Result<SealAnswer>;
ProxySealAnswer seal_proxy(const ProxySeal& seal, const Clock& clock);

// `guard check proxy:URL`: what can be seen from outside. Nothing is changed.
struct ProxyCheck {
  std::string url;
  Millis timeout{10'000};
};
using ProxyCheckAnswer = Result<std::vector<CheckLine>>;
ProxyCheckAnswer check_proxy(const ProxyCheck& check, const Clock& clock);

// The entries of the module; see store/module.h.
using ProxyEntry = void(const ProxyRequest& request, const Clock& clock, OpenedProxy* answer);
using ProxySealEntry = void(const ProxySeal& seal, const Clock& clock, ProxySealAnswer* answer);
using ProxyCheckEntry = void(const ProxyCheck& check, const Clock& clock, ProxyCheckAnswer* answer);
constexpr const char* kProxyEntry = "stint_open_proxy";
constexpr const char* kProxySealEntry = "stint_seal_proxy";
constexpr const char* kProxyCheckEntry = "stint_check_proxy";

}  // namespace stint::guard::http
