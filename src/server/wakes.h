// Wake-ups from the store for many who wait: one watch a resource (or for the ledger), however many
// wait for it. The loop's.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "net/http/server.h"
#include "server/server.h"

namespace stint::server {

class Wakes {
 public:
  // Ends when it goes.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };

  Wakes(const ServeRequest& serve, net::http::Server& http) : serve_(serve), http_(http) {}
  Wakes(const Wakes&) = delete;
  Wakes& operator=(const Wakes&) = delete;

  // `task` is called soon, once the watch stands, and whenever something may have changed. Empty
  // resource: the ledger. A store that cannot be watched wakes every half second instead.
  std::unique_ptr<Subscription> subscribe(const std::string& resource, std::function<void()> task);

 private:
  struct Place;
  class One;
  void open(const std::shared_ptr<Place>& place);
  static void wake(const std::shared_ptr<Place>& place);
  void poll(const std::shared_ptr<Place>& place);

  const ServeRequest& serve_;
  net::http::Server& http_;
  std::map<std::string, std::shared_ptr<Place>> places_;
};

}  // namespace stint::server
