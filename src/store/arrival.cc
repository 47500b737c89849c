#include "store/arrival.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "os/filesystem.h"

namespace stint::store {
namespace {

constexpr std::array<std::string_view, 7> kFileSystems = {"ext4", "xfs",   "btrfs",  "f2fs",
                                                          "zfs",  "tmpfs", "overlay"};

}  // namespace

Arrival arrival_of(const std::vector<BootRow>& rows, const os::ClockName& here) {
  if (rows.empty()) return Arrival::FirstBoot;
  const os::ClockName& there = rows.back().name;
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
