// How many leases stand that were given to each key through this server. For the limit of a key
// alone: nothing else rests on it. What has run out is forgotten, so it is never larger than what
// stands. Thread safety: none.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace stint::server {

class HeldBook {
 public:
  // Granted or renewed.
  void note(const std::string& resource, const std::string& key, MonoTime until, MonoTime now) {
    forget_past(now);
    ended(resource);
    held_.emplace(resource, Held{key, until});
    ends_.emplace(until, resource);
    ++counts_[key];
  }

  // Released, revoked, transferred. NOT an error: it is not known.
  void ended(const std::string& resource) {
    const auto found = held_.find(resource);
    if (found == held_.end()) return;
    ends_.erase({found->second.until, resource});
    const auto count = counts_.find(found->second.key);
    if (--count->second == 0) counts_.erase(count);
    held_.erase(found);
  }

  // What the key would hold with these: what it has already is not counted twice.
  std::size_t count_with(const std::string& key, const std::vector<std::string>& wanted,
                         MonoTime now) {
    forget_past(now);
    const auto count = counts_.find(key);
    std::size_t out = count == counts_.end() ? 0 : count->second;
    for (const std::string& one : wanted) {
      const auto found = held_.find(one);
      if (found == held_.end() || found->second.key != key) ++out;
    }
    return out;
  }

  std::size_t size() const { return held_.size(); }

 private:
  struct Held {
    std::string key;
    MonoTime until{};
  };
  void forget_past(MonoTime now) {
    while (!ends_.empty() && ends_.begin()->first <= now) {
      const std::string resource = ends_.begin()->second;
      ended(resource);
    }
  }

  std::map<std::string, Held> held_;                 // by resource
  std::set<std::pair<MonoTime, std::string>> ends_;  // of the same
  std::map<std::string, std::size_t> counts_;        // by key; never zero
};

}  // namespace stint::server
