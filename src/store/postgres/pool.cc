#include "store/postgres/pool.h"

#include <algorithm>

#include "base/text.h"

namespace stint::store::postgres {

std::unique_ptr<Connection> Pool::take_idle() {
  auto conn = std::move(idle_.back());
  idle_.pop_back();
  return conn;
}

bool Pool::may_have_one(Use use) const {
  if (use == Use::Patient && patient_ >= kMostPatient) return false;
  return !idle_.empty() || open_ < kMost;
}

bool Pool::crowded() const {
  const MutexLock lock(mutex_);
  return patient_ >= kMostPatient;
}

Result<Pool::Loan> Pool::borrow(MonoTime until, Use use) {
  while (true) {
    std::unique_ptr<Connection> conn;
    {
      MutexLock lock(mutex_);
      while (!may_have_one(use)) {
        const auto left = until - clock_.mono();
        if (left <= Nanos(0)) {
          return unavailable(cat("all ", use == Use::Patient ? kMostPatient : kMost,
                                 " connections to the server were busy for ",
                                 format_duration(settings_.timeout)));
        }
        returned_.wait_for(lock, std::min<Nanos>(left, std::chrono::seconds(1)));
      }
      if (use == Use::Patient) ++patient_;
      if (idle_.empty()) {
        ++open_;
        break;
      }
      conn = take_idle();
    }
    // The server may have gone, or gone and come back, since it was last used.
    if (conn->healthy()) return Loan(*this, std::move(conn), use);
    forget(std::move(conn), use);
  }
  const Connection::Plan plan{
      .hosts = settings_.hosts, .pooled = pooled(), .relaxed = false, .catalogue_only = true};
  auto opened = Connection::open(settings_, plan, clock_, until);
  if (!opened) {
    forget(nullptr, use);
    return opened.error();
  }
  return Loan(*this, std::move(*opened), use);
}

void Pool::give_back(std::unique_ptr<Connection> conn, Use use) {
  if (conn->broken() || conn->pooled() != pooled()) return forget(std::move(conn), use);
  {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(conn));
    if (use == Use::Patient) --patient_;
  }
  // Not one: it may be somebody who may not have it.
  returned_.notify_all();
}

void Pool::forget(std::unique_ptr<Connection> conn, Use use) {
  conn.reset();
  {
    const MutexLock lock(mutex_);
    --open_;
    if (use == Use::Patient) --patient_;
  }
  returned_.notify_all();
}

void Pool::set_pooled() {
  const MutexLock lock(mutex_);
  pooled_ = true;
}

bool Pool::pooled() const {
  const MutexLock lock(mutex_);
  return pooled_;
}

}  // namespace stint::store::postgres
