// Server-Sent Events: the ledger as it grows, and wake-ups for who watches a resource. The loop's.
#pragma once

#include <functional>
#include <list>
#include <memory>

#include "server/routes.h"
#include "server/waiters.h"
#include "server/wakes.h"

namespace stint::server {

class Streams {
 public:
  Streams(const ServeRequest& serve, net::http::Server& http, Wakes& wakes, Metrics& metrics)
      : serve_(serve), http_(http), wakes_(wakes), metrics_(metrics) {}
  ~Streams() { close(); }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  // The ledger after `after` (empty: from now on), of the prefix, as far as the caller reaches.
  void follow(const VisitPtr& visit, const std::string& prefix, const std::string& after);
  // "event: changed" whenever the resource (empty: the ledger) may have changed.
  void watch(const VisitPtr& visit, const std::string& resource);
  // Those whose client is still there.
  std::size_t count();
  // Ends those of whom `out` says so.
  void turn_out(const std::function<bool(const Caller&)>& out);
  // Ends them all: clients come back elsewhere, from where they were.
  void close();

 private:
  struct Stream {
    std::shared_ptr<net::http::Feed> feed;
    std::unique_ptr<Wakes::Subscription> wakes;  // null: it is over
    Caller caller;
    std::string prefix;
    std::string after;
    bool from_now = false;
    bool reading = false;
    bool again = false;
  };
  using StreamPtr = std::shared_ptr<Stream>;
  StreamPtr open(const VisitPtr& visit);
  void read(const StreamPtr& stream);
  void put(const StreamPtr& stream, const std::vector<api::Event>& events);
  bool over(const StreamPtr& stream);
  void drop(const StreamPtr& stream);
  void beat(const StreamPtr& stream);

  const ServeRequest& serve_;
  net::http::Server& http_;
  Wakes& wakes_;
  Metrics& metrics_;
  std::list<StreamPtr> open_;
};

}  // namespace stint::server
