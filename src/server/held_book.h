// How many leases stand that were given to each key through this server, and how many are being
// asked for. For the limit of a key alone: nothing else rests on it. What has run out is forgotten,
// so it is never larger than what stands and is asked for. Thread safety: none.
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

  // Places for what is asked for, until it is noted or give_up(). False: with these the key would
  // hold more than `most`, and nothing is changed. What it has, or asks for, already is not counted
  // twice.
  bool reserve(const std::string& key, const std::vector<std::string>& wanted, std::size_t most,
               MonoTime now) {
    if (count_with(key, wanted, now) > most) return false;
    for (const std::string& one : wanted) ++asked_[key][one];
    return true;
  }

  // What was reserved: it is noted by now, or was refused.
  void give_up(const std::string& key, const std::vector<std::string>& wanted) {
    const auto mine = asked_.find(key);
    if (mine == asked_.end()) return;
    for (const std::string& one : wanted) {
      const auto found = mine->second.find(one);
      if (found != mine->second.end() && --found->second == 0) mine->second.erase(found);
    }
    if (mine->second.empty()) asked_.erase(mine);
  }

  // What the key would hold with these.
  std::size_t count_with(const std::string& key, const std::vector<std::string>& wanted,
                         MonoTime now) {
    forget_past(now);
    const auto count = counts_.find(key);
    std::size_t out = count == counts_.end() ? 0 : count->second;
    const auto asked = asked_.find(key);
    const bool asks = asked != asked_.end();
    if (asks) {
      for (const auto& [resource, times] : asked->second) out += has(key, resource) ? 0 : 1;
    }
    for (const std::string& one : wanted) {
      if (!has(key, one) && !(asks && asked->second.contains(one))) ++out;
    }
    return out;
  }

  std::size_t size() const { return held_.size(); }

 private:
  struct Held {
    std::string key;
    MonoTime until{};
  };
  bool has(const std::string& key, const std::string& resource) const {
    const auto found = held_.find(resource);
    return found != held_.end() && found->second.key == key;
  }
  void forget_past(MonoTime now) {
    while (!ends_.empty() && ends_.begin()->first <= now) {
      const std::string resource = ends_.begin()->second;
      ended(resource);
    }
  }

  std::map<std::string, Held> held_;                 // by resource
  std::set<std::pair<MonoTime, std::string>> ends_;  // of the same
  std::map<std::string, std::size_t> counts_;        // by key; never zero
  // By key and resource: how many ask for it. Never zero; no more resources than the limit.
  std::map<std::string, std::map<std::string, std::size_t>> asked_;
};

}  // namespace stint::server
