// A client of the leases in any store, as one process would be: with its own connections.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/leases.h"
#include "base/random.h"
#include "os/clock.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "service/ledger.h"
#include "service/queue_service.h"
#include "store/seam.h"

namespace stint::bench {

class Client {
 public:
  // Any store's URL; ends the program if it cannot be opened.
  explicit Client(const std::string& url);

  api::Leases& leases() { return *leases_; }
  api::Queue& queue() { return *queue_; }
  store::Store& store() { return *store_; }
  // Nothing: it is held.
  std::optional<api::Grip> try_take(const std::string& name);
  // These end the program if they fail.
  api::Grip take(const std::string& name);
  void renew(const api::Grip& grip);
  void release(const api::Grip& grip);
  // Sleeps until it can be taken, as waiters do.
  api::Grip wait_for(const std::string& name);

 private:
  os::SystemClock clock_;
  os::SystemRandom random_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<service::Ledger> ledger_;
  std::unique_ptr<service::LeaseService> leases_;
  std::unique_ptr<service::QueueService> queue_;
};

}  // namespace stint::bench
