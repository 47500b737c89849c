// A record and its timer as a store with a boot-time clock keeps them, and what a step makes of it
// at one moment.
#pragma once

#include <optional>
#include <string>

#include "store/reboot.h"
#include "store/seam.h"

namespace stint::store {

struct Row {
  std::string value;
  Version version = 0;  // 0: there is no such row
  std::optional<StoredTimer> timer;
};

// The last version given, and the time of the last commit.
struct Mark {
  Version seq = 0;
  Nanos last{0};
};

// The timers of one transaction, at one moment.
class Moment {
 public:
  Moment(const Boots& boots, Nanos now) : boots_(boots), now_(now) {}

  Nanos now() const { return now_; }
  TimerState state(const std::optional<StoredTimer>& timer) const;
  Entry entry(std::string key, Row row) const;
  // The row's timer after the step.
  std::optional<StoredTimer> planned(const Step& step, const Row& row) const;
  // Whether the step's expectation and demand are met by the row as it is.
  bool holds(const Step& step, const Row& row) const;

 private:
  const Boots& boots_;
  Nanos now_;
};

// Whatever the row is, the step does the same: nothing to look at.
bool blind(const Step& step);

}  // namespace stint::store
