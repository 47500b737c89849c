// Wake-ups from the store for many who wait: one watch a topic, however many wait for it. The
// loop's.
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

  // What can be watched. Empty: the ledger; a resource's name: that one; and these, which no
  // resource is called.
  static std::string of_queue(const core::QueueName& queue) { return "\x01" + queue.text(); }
  static std::string of_jobs() { return "\x03"; }
  static std::string of_item(const core::ItemId& id) { return "\x02" + id.text(); }

  // `task` is called soon, once the watch stands, and whenever something may have changed. A store
  // that cannot be watched wakes every half second instead.
  std::unique_ptr<Subscription> subscribe(const std::string& topic, std::function<void()> task);

 private:
  struct Place;
  class One;
  void open(const std::shared_ptr<Place>& place);
  Result<std::unique_ptr<Watch>> watch(const std::string& topic);
  static void wake(const std::shared_ptr<Place>& place);
  void poll(const std::shared_ptr<Place>& place);

  const ServeRequest& serve_;
  net::http::Server& http_;
  std::map<std::string, std::shared_ptr<Place>> places_;
};

}  // namespace stint::server
