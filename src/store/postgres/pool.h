// A few connections for many threads.
#pragma once

#include <condition_variable>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "store/postgres/client.h"

namespace stint::store::postgres {

class Pool {
 public:
  static constexpr std::size_t kMost = 8;

  Pool(const Settings& settings, const Clock& clock) : settings_(settings), clock_(clock) {}

  // A connection on loan; a broken one does not go back.
  class Loan {
   public:
    Loan(Pool& pool, std::unique_ptr<Connection> conn) : pool_(&pool), conn_(std::move(conn)) {}
    Loan(Loan&&) noexcept = default;
    Loan& operator=(Loan&&) = delete;
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
      if (conn_) pool_->give_back(std::move(conn_));
    }
    Connection& operator*() const { return *conn_; }
    Connection* operator->() const { return conn_.get(); }
    // Its answers make no sense: never to be used again.
    void spoil() { pool_->forget(std::move(conn_)); }

   private:
    Pool* pool_;
    std::unique_ptr<Connection> conn_;
  };

  // Waits for one until the time is over.
  Result<Loan> borrow(MonoTime until);

  // From now on: as through a pooler. Connections made before are closed when they come back.
  void set_pooled();
  bool pooled() const;

 private:
  void give_back(std::unique_ptr<Connection> conn);
  void forget(std::unique_ptr<Connection> conn);
  std::unique_ptr<Connection> take_idle() REQUIRES(mutex_);

  const Settings& settings_;
  const Clock& clock_;

  mutable Mutex mutex_;
  std::condition_variable_any returned_;
  std::vector<std::unique_ptr<Connection>> idle_ GUARDED_BY(mutex_);
  std::size_t open_ GUARDED_BY(mutex_) = 0;
  bool pooled_ GUARDED_BY(mutex_) = false;
};

}  // namespace stint::store::postgres
