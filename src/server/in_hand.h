// Requests under one claim, one after the other: the same list asked for twice at once would
// otherwise be two tries, of which the one gives back what the other has found standing and tells
// of. Of one server; what another one does at the same time is not seen here (docs/limits.md).
//
// Thread safety: any thread.
#pragma once

#include <condition_variable>
#include <set>
#include <string>

#include "base/mutex.h"
#include "base/names.h"

namespace stint::server {

class InHand {
 public:
  class Stay {
   public:
    Stay(InHand& all, std::string name) : all_(all), name_(std::move(name)) {}
    ~Stay() { all_.leave(name_); }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    InHand& all_;
    const std::string name_;
  };

  // Waits until nobody else is at it: as long as the store takes for that one.
  [[nodiscard]] Stay enter(const Claim& claim) {
    MutexLock lock(mutex_);
    left_.wait(lock, [&]() REQUIRES(mutex_) { return names_.insert(claim.hash().hex()).second; });
    return {*this, claim.hash().hex()};
  }

 private:
  void leave(const std::string& name) {
    {
      const MutexLock lock(mutex_);
      names_.erase(name);
    }
    left_.notify_all();
  }

  Mutex mutex_;
  std::condition_variable_any left_;
  std::set<std::string> names_ GUARDED_BY(mutex_);
};

}  // namespace stint::server
