// Requests under one claim, one after the other: the same list asked for twice at once would
// otherwise be two tries, of which the one gives back what the other has found standing and tells
// of. Of one server; what another one does at the same time is not seen here (docs/limits.md).
//
// Thread safety: any thread.
#pragma once

#include <condition_variable>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/names.h"

namespace stint::server {

class InHand {
 public:
  // Threads that wait for one another are none for anybody else.
  static constexpr std::size_t kMostOfOne = 4;

  class Stay {
   public:
    Stay(InHand* all, std::string name) : all_(all), name_(std::move(name)) {}
    Stay(Stay&& other) noexcept
        : all_(std::exchange(other.all_, nullptr)), name_(std::move(other.name_)) {}
    ~Stay() {
      if (all_ != nullptr) all_->leave(name_);
    }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    Stay& operator=(Stay&&) = delete;

   private:
    InHand* all_;
    std::string name_;
  };

  // Waits until nobody else is at it: as long as the store takes for those. Nothing: so many are at
  // it, or wait, already.
  [[nodiscard]] std::optional<Stay> enter(const Claim& claim) {
    const std::string& name = claim.hash().hex();
    MutexLock lock(mutex_);
    std::size_t& here = here_[name];
    if (here >= kMostOfOne) return std::nullopt;
    ++here;
    left_.wait(lock, [&]() REQUIRES(mutex_) { return in_.insert(name).second; });
    return std::optional<Stay>(std::in_place, this, name);
  }

 private:
  void leave(const std::string& name) {
    {
      const MutexLock lock(mutex_);
      in_.erase(name);
      if (--here_[name] == 0) here_.erase(name);
    }
    left_.notify_all();
  }

  Mutex mutex_;
  std::condition_variable_any left_;
  std::set<std::string> in_ GUARDED_BY(mutex_);
  std::map<std::string, std::size_t> here_ GUARDED_BY(mutex_);  // in, or waiting
};

}  // namespace stint::server
