// The ledger: every change of ownership and every refusal, in the order in which they were
// committed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "base/watch.h"

namespace stint::api {

struct Event {
  std::string number;  // where it stands in the ledger; to go on from
  WallTime at{};
  std::string kind;
  std::string resource;
  std::uint64_t token = 0;  // zero: none
  std::string owner;
  using Detail = std::pair<std::string, std::variant<std::string, std::int64_t>>;
  std::vector<Detail> details;  // reason, by, why, cause, target, count ...
};

struct EventQuery {
  std::string after;   // a number; empty: from the oldest kept
  std::string prefix;  // of the resource
  std::size_t limit = 1000;
  bool newest = false;  // the newest `limit`, still oldest first
};

class Events {
 public:
  virtual ~Events() = default;
  virtual Result<std::vector<Event>> list(const EventQuery& query) = 0;
  // Written apart from any answer, unsynced.
  virtual Status record(const Event& event) = 0;
  // A guard's refusal at a target: one line a minute and target, over all processes; what came in
  // between is counted, and the next line tells how many they were.
  virtual Status record_refusal(const Event& event, const std::string& target) = 0;
  virtual Result<std::unique_ptr<Watch>> watch() = 0;
};

}  // namespace stint::api
