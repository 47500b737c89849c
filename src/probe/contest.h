// Many who count on one record at once: only a working compare-and-commit keeps the number right.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "store/seam.h"

namespace stint::probe {

struct Contest {
  std::string key;
  int contenders = 8;
  int increments = 15;  // that each must get acknowledged
};

struct Tally {
  std::uint64_t acknowledged = 0;
  std::uint64_t unknown = 0;  // sent, no answer: may count or not
};

// One contender's part: reads the number, commits one more, until it has done so often enough. It
// pauses in between, so that the others come in between on any machine.
Result<Tally> contend(store::Store& store, const Contest& contest,
                      const std::function<void(Nanos)>& pause);

// The number at the key; 0 if it is absent.
Result<std::uint64_t> read_number(store::Store& store, const std::string& key);

}  // namespace stint::probe
