// Whose claim an epoch of an item is. An epoch is no secret, so a key may only speak for the claims
// that its own runs were given; who was given an epoch never changes. Thread safety: any thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/queue.h"
#include "base/mutex.h"

namespace stint::server {

class ClaimBook {
 public:
  std::optional<Owner> find(const api::ItemRef& ref) const {
    const MutexLock lock(mutex_);
    const auto known = owners_.find(key(ref));
    if (known == owners_.end()) return std::nullopt;
    return known->second;
  }
  void note(const api::ItemRef& ref, const Owner& owner) {
    constexpr std::size_t kMost = 65'536;
    const MutexLock lock(mutex_);
    if (owners_.size() >= kMost) owners_.clear();  // it is looked up again
    owners_.insert_or_assign(key(ref), owner);
  }

 private:
  static std::string key(const api::ItemRef& ref) {
    return ref.id.text() + "/" + std::to_string(ref.epoch.number());
  }
  mutable Mutex mutex_;
  std::map<std::string, Owner> owners_ GUARDED_BY(mutex_);
};

}  // namespace stint::server
