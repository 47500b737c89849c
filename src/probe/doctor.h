// Whether a store can carry leases: tried, not believed.
//
// Every check uses the seam alone, through several openings of the store, as several machines
// would. All that it writes stands under one key prefix of its own and is removed at the end.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "probe/contest.h"
#include "store/seam.h"

namespace stint::probe {

using store::Finding;

// What the doctor needs of the world.
struct Practice {
  // Another opening of the store under examination.
  std::function<Result<std::unique_ptr<store::Store>>()> open;
  // Runs all contenders at once, each on an opening of its own, and adds up.
  std::function<Result<Tally>(const Contest&)> contest;
  // Waits until the descriptor is readable, or until the time; true: readable.
  std::function<bool(int fd, MonoTime until)> wait;
  std::function<void(Nanos)> pause;
  const Clock& clock;
  Random& random;
  // Called with each finding as it is made.
  std::function<void(const Finding&)> tell;
  std::string_view contenders = "processes";  // what they are
};

// A fault (the store cannot be reached at all) is an error; everything else is a finding.
Status examine(const Practice& practice);

std::string_view word(Finding::Level level);  // ok, warn, fail

}  // namespace stint::probe
