// Who comes in: keys are kept in mind, looked at anew when one was made or revoked, and at the
// latest every few seconds. Thread safety: any thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/mutex.h"
#include "net/http/server.h"
#include "server/caller.h"
#include "server/server.h"

namespace stint::server {

class Gatekeeper {
 public:
  using Table = std::map<std::string, std::shared_ptr<const api::Key>, std::less<>>;

  Gatekeeper(const ServeRequest& serve, const Clock& clock) : serve_(serve), clock_(clock) {}

  // Reads the keys. May wait for the store.
  Result<std::shared_ptr<const Table>> read() const;
  void learn(std::shared_ptr<const Table> keys) {
    const MutexLock lock(mutex_);
    keys_ = std::move(keys);
  }
  // Once any key exists every request needs one. A revoked or expired one counts: the last key's
  // end must not open the door.
  bool asks() const { return asks(*known()); }

  // 401 with the reason. Without keys: 403 for who asks in the name of a page of another place, or
  // by a name that is not this machine's.
  std::variant<Caller, net::http::Answer> admit(const net::http::RequestHead& head) const;
  // Of who was let in and is still here (a wait, a stream): what it is told if it would not be let
  // in any more; empty: it would.
  std::optional<net::http::Answer> turn_out(const Caller& caller) const;
  // False: this key has asked too much within the last second.
  bool within_rate(const Caller& caller);

 private:
  struct Bucket {
    double left = 0;
    MonoTime at{};
  };
  // Why it is not in force; empty: it is.
  std::string over(const api::Key& key) const;
  bool asks(const Table& keys) const { return !serve_.demo && !keys.empty(); }
  std::shared_ptr<const Table> known() const {
    const MutexLock lock(mutex_);
    return keys_;
  }

  const ServeRequest& serve_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::shared_ptr<const Table> keys_ GUARDED_BY(mutex_) = std::make_shared<Table>();
  std::map<std::string, Bucket> buckets_ GUARDED_BY(mutex_);
};

}  // namespace stint::server
