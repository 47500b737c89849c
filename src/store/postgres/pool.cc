#include "store/postgres/pool.h"

#include <algorithm>

#include "base/text.h"

namespace stint::store::postgres {

std::unique_ptr<Connection> Pool::take_idle() {
  auto conn = std::move(idle_.back());
  idle_.pop_back();
  return conn;
}

Result<Pool::Loan> Pool::borrow(MonoTime until) {
  while (true) {
    std::unique_ptr<Connection> conn;
    {
      MutexLock lock(mutex_);
      while (idle_.empty() && open_ >= kMost) {
        const auto left = until - clock_.mono();
        if (left <= Nanos(0)) {
          return unavailable(cat("all ", kMost, " connections to the server were busy for ",
                                 format_duration(settings_.timeout)));
        }
        returned_.wait_for(lock, std::min<Nanos>(left, std::chrono::seconds(1)));
      }
      if (idle_.empty()) {
        ++open_;
        break;
      }
      conn = take_idle();
    }
    // The server may have gone, or gone and come back, since it was last used.
    if (conn->healthy()) return Loan(*this, std::move(conn));
    forget(std::move(conn));
  }
  auto opened = Connection::open(
      settings_, {.hosts = settings_.hosts, .pooled = pooled(), .relaxed = false}, clock_, until);
  if (!opened) {
    forget(nullptr);
    return opened.error();
  }
  return Loan(*this, std::move(*opened));
}

void Pool::give_back(std::unique_ptr<Connection> conn) {
  if (conn->broken() || conn->pooled() != pooled()) return forget(std::move(conn));
  {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(conn));
  }
  returned_.notify_one();
}

void Pool::forget(std::unique_ptr<Connection> conn) {
  conn.reset();
  {
    const MutexLock lock(mutex_);
    --open_;
  }
  returned_.notify_one();
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
