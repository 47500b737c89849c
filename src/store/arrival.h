// A store on a disk of this machine is opened: under which boot, on which machine, on which file
// system. What every store with a boot-time clock asks before it believes its timers.   G4 G12
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "os/clock.h"
#include "store/reboot.h"

namespace stint::store {

// One boot under which the store was opened.
struct BootRow {
  os::ClockName name;
  Boot boot;
  bool copied = false;     // it came from another machine, and nobody has accepted that yet
  bool prolonged = false;  // timers were running when the boot before ended
};

// Without /proc nobody can say which boot this is (an empty boot id). Then the clock goes by the
// name that the store has for it, and the reboot rule does not apply: nothing is prolonged. A clock
// that stands behind the last commit is not that one, though: Reboot where the time namespaces are
// seen to be the same, else UnnamedClock, which is refused.                                    G3
enum class Arrival { SameBoot, FirstBoot, Reboot, Copy, OtherNamespace, UnnamedClock };
struct ClockReading {
  Nanos now{0};
  Nanos last_commit{0};  // counts only where a boot has no name
};
Arrival arrival_of(const std::vector<BootRow>& rows, const os::ClockName& here,
                   const ClockReading& reading);
// Whether both are named: this boot, and the last one under which the store was opened.
bool boots_are_named(const std::vector<BootRow>& rows, const os::ClockName& here);

Error copied_error(const std::string& path);
Error unnamed_clock_error(const std::string& path);
Error namespace_error(const std::string& path, const os::ClockName& there,
                      const os::ClockName& here);

// Only where locks and syncs are known to hold. `kind` is the store's: "sqlite".
Status check_filesystem(std::string_view kind, const std::string& directory);

}  // namespace stint::store
