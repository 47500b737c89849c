#include "os/filesystem.h"

#include <sys/vfs.h>

#include <array>
#include <utility>

#include "base/text.h"
#include "os/fd.h"

namespace stint::os {
namespace {

constexpr std::array<std::pair<unsigned long, const char*>, 15> kNames = {{
    {0xEF53, "ext4"},
    {0x58465342, "xfs"},
    {0x9123683E, "btrfs"},
    {0xF2F52010, "f2fs"},
    {0x2FC12FC1, "zfs"},
    {0x01021994, "tmpfs"},
    {0x794C7630, "overlay"},
    {0x6969, "nfs"},
    {0xFF534D42, "cifs"},
    {0xFE534D42, "smb2"},
    {0x65735546, "fuse"},
    {0x01021997, "9p"},
    {0x4D44, "vfat"},
    {0x858458F6, "ramfs"},
    {0x9FA0, "proc"},
}};

}  // namespace

Result<std::string> filesystem_of(const std::string& path) {
  struct statfs fs {};
  if (::statfs(path.c_str(), &fs) != 0) {
    return unavailable(errno_text(cat("looking at the file system of ", quoted(path))));
  }
  const auto type = static_cast<unsigned long>(fs.f_type) & 0xFFFFFFFFUL;
  for (const auto& [number, name] : kNames) {
    if (number == type) return std::string(name);
  }
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(type >> static_cast<unsigned>(shift) & 0xFFU);
  }
  return cat("0x", to_hex(bytes));
}

}  // namespace stint::os
