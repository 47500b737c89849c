#include "store/arrival.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "os/filesystem.h"

namespace stint::store {
namespace {

constexpr std::array<std::string_view, 7> kFileSystems = {"ext4", "xfs",   "btrfs",  "f2fs",
                                                          "zfs",  "tmpfs", "overlay"};

// Who opens a store reads the clock first, and may then wait for its lock.
constexpr std::chrono::minutes kAhead{1};

bool differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

Arrival without_a_name(const os::ClockName& there, const os::ClockName& here,
                       const ClockReading& reading) {
  if (differ(there.machine_id, here.machine_id)) return Arrival::Copy;
  if (differ(there.time_namespace, here.time_namespace)) return Arrival::OtherNamespace;
  if (reading.now + kAhead >= reading.last_commit) return Arrival::SameBoot;
  const bool same_namespace = !here.time_namespace.empty() && !there.time_namespace.empty();
  return same_namespace ? Arrival::Reboot : Arrival::UnnamedClock;
}

}  // namespace

bool boots_are_named(const std::vector<BootRow>& rows, const os::ClockName& here) {
  return !here.boot_id.empty() && (rows.empty() || !rows.back().name.boot_id.empty());
}

Arrival arrival_of(const std::vector<BootRow>& rows, const os::ClockName& here,
                   const ClockReading& reading) {
  if (rows.empty()) return Arrival::FirstBoot;
  const os::ClockName& there = rows.back().name;
  if (!boots_are_named(rows, here)) return without_a_name(there, here, reading);
  if (there.boot_id == here.boot_id) {
    return there.time_namespace == here.time_namespace ? Arrival::SameBoot
                                                       : Arrival::OtherNamespace;
  }
  const bool same_machine = !here.machine_id.empty() && there.machine_id == here.machine_id;
  return same_machine ? Arrival::Reboot : Arrival::Copy;
}

Error copied_error(const std::string& path) {
  return unavailable(cat("the store ", quoted(path),
                         " was copied from another machine. Tokens issued since that copy "
                         "are not in it, so it is refused until an operator has looked at it: see "
                         "docs/guides/restore.md"));
}

Error unnamed_clock_error(const std::string& path) {
  return unavailable(cat("the store ", quoted(path),
                         " was last used when this machine's clock stood later than now: the "
                         "machine was started anew, or this is another time namespace. Which one "
                         "cannot be told without /proc. Open it once where /proc can be read "
                         "(stint ls)"));
}

Error namespace_error(const std::string& path, const os::ClockName& there,
                      const os::ClockName& here) {
  return unavailable(cat("the store ", quoted(path), " is in use under another time namespace (",
                         there.time_namespace, ", here ", here.time_namespace,
                         "): the clocks do not compare"));
}

Status check_filesystem(std::string_view kind, const std::string& directory) {
  const auto found = os::filesystem_of(directory);
  if (!found) return found.error();
  if (std::ranges::find(kFileSystems, *found) != kFileSystems.end()) return {};
  return unavailable(
      cat("a ", kind, ": store cannot be kept on ", *found, " (", quoted(directory),
          "): its locks and syncs are not known to hold there. Use a local disk, or a "
          "dir: store on a shared mount"));
}

}  // namespace stint::store
