// One client of `stint torture`: takes leases, works under them and after them, and writes down
// what it was told. It is meant to be stopped and killed at any moment by somebody else.
//
// Each resource has targets of its own, filled one after the other. A target's content is the list
// of the writes that it has accepted, a line each: every write is the one before it and one more,
// so that what stands there in the end is the guard's own log, and a lost update is a missing line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/leases.h"
#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "probe/history.h"
#include "probe/recorded_leases.h"

namespace stint::probe {

// How a client reaches its targets. An answer is what the history says of it: Ok, Fail with its
// cause ("stale": a newer token was there), or Info.
struct TargetAnswer {
  Phase phase = Phase::Info;
  std::string cause;
};
class Targets {
 public:
  virtual ~Targets() = default;
  virtual TargetAnswer seal(const std::string& target, const api::Grip& grip) = 0;
  virtual TargetAnswer write(const std::string& target, const std::string& body,
                             const api::Grip& grip) = 0;
  // Empty: it is not there yet.
  virtual Result<std::string> read(const std::string& target) = 0;
};

// A line of a target: "version token client key".
struct TargetLine {
  std::uint64_t version = 0;
  Token token;
  std::string client;
  std::string key;
};
std::string to_text(const TargetLine& line);
// Nothing: it is torn.
std::optional<std::vector<TargetLine>> parse_target(std::string_view body);

// What stands at a target in the end, as observations of the history. Anything: it was looked at.
std::vector<HistoryEvent> landed_events(const std::string& resource, const std::string& target,
                                        const std::vector<TargetLine>& lines);

struct TorturePlan {
  std::string prefix;  // of its resources
  int resources = 4;
  Millis ttl{500};
  std::size_t lines = 500;  // a target with so many is full; the next one follows
};
std::string resource_of(const TorturePlan& plan, int number);
std::string target_of(int resource, std::size_t number);

struct TortureWorld {
  api::Leases& leases;
  Targets& targets;
  History& history;
  const Clock& clock;
  Random& random;
  std::function<void(Nanos)> pause;
  std::function<bool()> stop;
};

// Works until it is told to stop.
void torture_client(const TorturePlan& plan, const std::string& name, const TortureWorld& world);

}  // namespace stint::probe
