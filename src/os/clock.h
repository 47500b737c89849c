// The machine's clocks, and their names. The only place that reads them.
#pragma once

#include <string>

#include "base/time.h"

namespace stint::os {

class SystemClock final : public Clock {
 public:
  MonoTime mono() const override;  // CLOCK_BOOTTIME: counts time asleep
  WallTime wall() const override;
};

// For what has no clock handed to it and outlives every caller, such as a table of functions.
inline const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

// Since the boot, without the time asleep: for what a sleeping machine cannot do either.
Nanos awake();

// Which clock a MonoTime was read from. Two readings compare only within one boot and time
// namespace.
struct ClockName {
  std::string boot_id;
  std::string time_namespace;
  std::string machine_id;  // empty where the machine has none
};
ClockName clock_name();

}  // namespace stint::os
