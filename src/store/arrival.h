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

enum class Arrival { SameBoot, FirstBoot, Reboot, Copy, OtherNamespace };
Arrival arrival_of(const std::vector<BootRow>& rows, const os::ClockName& here);

Error copied_error(const std::string& path);
Error namespace_error(const std::string& path, const os::ClockName& there,
                      const os::ClockName& here);

// Only where locks and syncs are known to hold. `kind` is the store's: "sqlite".
Status check_filesystem(std::string_view kind, const std::string& directory);

}  // namespace stint::store
