// etcd's leases: what timers hang on.
//
// Each is granted for one timer and attached to one key, once. It is revoked only after a
// transaction has moved that key to another lease or removed it, or has certainly not attached it:
// so a revocation removes nothing that is in use. What was sent without an answer is never revoked.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <thread>

#include "base/mutex.h"
#include "store/etcd/gateway.h"
#include "store/etcd/wire.h"

namespace stint::store::etcd {

struct Granted {
  LeaseId id = 0;
  std::int64_t seconds = 0;  // what the server gave: at least what was asked
};

// Rounded up to what etcd counts in.
std::int64_t whole_seconds(Millis ttl);

class Leases {
 public:
  explicit Leases(Gateway& gateway, const Clock& clock) : gateway_(gateway), clock_(clock) {}
  ~Leases();  // what is still to be revoked is, for a short while; the rest runs out
  Leases(const Leases&) = delete;
  Leases& operator=(const Leases&) = delete;

  Result<Granted> grant(std::int64_t seconds, const Deadline& deadline);
  // Whole seconds, rounded down; empty: there is no such lease any more.
  Result<std::optional<std::int64_t>> remaining(LeaseId id, const Deadline& deadline);
  // Later, by a thread of our own; only if it would live for long otherwise.
  void revoke_later(LeaseId id, std::int64_t seconds);

 private:
  void loop();

  Gateway& gateway_;
  const Clock& clock_;

  Mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<LeaseId> waiting_ GUARDED_BY(mutex_);
  bool closing_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);  // started when it is first needed
};

}  // namespace stint::store::etcd
