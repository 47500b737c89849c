// The process's environment variables: read here and nowhere else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "holder/run.h"

namespace stint::app {

class Environment {
 public:
  // The process's own.
  static Environment current();
  explicit Environment(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  // Empty values count as unset.
  std::optional<std::string> get(const std::string& name) const;
  const std::map<std::string, std::string>& all() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

// What the ancestors hold: STINT_HELD, one "resource generation token" a line, and
// STINT_HELD_CLAIMS, one claim a line, in the same order. Damaged ones are an error: a run must not
// guess.
Result<std::vector<holder::Ancestral>> ancestral_leases(const Environment& environment);

// As they stand in STINT_HELD and STINT_HELD_CLAIMS, the innermost last.
struct HeldLines {
  std::string held;
  std::string claims;
  void add(const holder::Ancestral& one);
};

// The child's environment: ours, with the innermost leases and all that the ancestors hold.
struct ChildLeases {
  // The first one is STINT_RESOURCE. None: those of the ancestors stay.
  std::vector<holder::Ancestral> innermost;
  Owner owner;
  std::int64_t deadline_ms = 0;
  std::string deadline_file;
  std::string store;       // without its password; empty: give none
  std::string store_file;  // with it
  std::string previous_progress;
};
std::vector<std::string> child_environment(const Environment& ours,
                                           const std::vector<holder::Ancestral>& ancestral,
                                           const ChildLeases& leases);

}  // namespace stint::app
