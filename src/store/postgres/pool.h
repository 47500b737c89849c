// A few connections for many threads. Some of them are never lent to who may have to wait for a
// row: else a few rows that guards hold for long would keep everybody waiting (ADR 0029).
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
  static constexpr std::size_t kMostPatient = 6;
  enum class Use {
    Prompt,   // it waits for nobody
    Patient,  // it may wait for a row
  };

  Pool(const Settings& settings, const Clock& clock) : settings_(settings), clock_(clock) {}

  // A connection on loan; a broken one does not go back.
  class Loan {
   public:
    Loan(Pool& pool, std::unique_ptr<Connection> conn, Use use)
        : pool_(&pool), conn_(std::move(conn)), use_(use) {}
    Loan(Loan&&) noexcept = default;
    Loan& operator=(Loan&&) = delete;
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() {
      if (conn_) pool_->give_back(std::move(conn_), use_);
    }
    Connection& operator*() const { return *conn_; }
    Connection* operator->() const { return conn_.get(); }
    // Its answers make no sense: never to be used again.
    void spoil() { pool_->forget(std::move(conn_), use_); }

   private:
    Pool* pool_;
    std::unique_ptr<Connection> conn_;
    Use use_;
  };

  // Waits for one until the time is over.
  Result<Loan> borrow(MonoTime until, Use use = Use::Prompt);
  // Nobody who may wait for a row would be lent one now.
  bool crowded() const;

  // From now on: as through a pooler. Connections made before are closed when they come back.
  void set_pooled();
  bool pooled() const;

 private:
  void give_back(std::unique_ptr<Connection> conn, Use use);
  void forget(std::unique_ptr<Connection> conn, Use use);
  std::unique_ptr<Connection> take_idle() REQUIRES(mutex_);
  bool may_have_one(Use use) const REQUIRES(mutex_);

  const Settings& settings_;
  const Clock& clock_;

  mutable Mutex mutex_;
  std::condition_variable_any returned_;
  std::vector<std::unique_ptr<Connection>> idle_ GUARDED_BY(mutex_);
  std::size_t open_ GUARDED_BY(mutex_) = 0;
  std::size_t patient_ GUARDED_BY(mutex_) = 0;  // of these, lent to who may wait for a row
  bool pooled_ GUARDED_BY(mutex_) = false;
};

}  // namespace stint::store::postgres
