// The way of torture's clients to a store that is a server: through a proxy that loses answers and
// requests and cuts connections.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/store_url.h"
#include "base/random.h"
#include "os/tcp_proxy.h"

namespace stint::app {

class TortureNet {
 public:
  // Nothing: the store is no server, or it is reached in a way that nobody may stand in (TLS, a
  // Unix socket).
  static Result<std::optional<TortureNet>> start(const StoreUrl& url);

  // Of the same store, by way of here.
  const std::string& url() const { return url_; }

  struct Struck {
    std::uint64_t answers = 0;   // carried out, and the answer was lost with the connection
    std::uint64_t requests = 0;  // never arrived
    std::uint64_t cuts = 0;      // of all connections at once
  };
  void strike(Random& random);
  Struck struck() const;
  // Ends what was begun.
  void forward();

 private:
  std::string url_;
  std::vector<std::unique_ptr<os::TcpProxy>> proxies_;  // one a host
  std::uint64_t requests_ = 0;
  std::uint64_t cuts_ = 0;
};

}  // namespace stint::app
