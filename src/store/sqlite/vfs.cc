#include "store/sqlite/vfs.h"

#include <sqlite3.h>

namespace stint::store {
namespace {

constexpr const char* kName = "stint";

sqlite3_vfs* base() {
  static sqlite3_vfs* const found = sqlite3_vfs_find(nullptr);
  return found;
}

int open_quietly(sqlite3_vfs* /*vfs*/, const char* path, sqlite3_file* file, int flags, int* out) {
  const bool log = (flags & SQLITE_OPEN_WAL) != 0 && (flags & SQLITE_OPEN_CREATE) != 0;
  if (log) {
    const int opened = base()->xOpen(base(), path, file, flags & ~SQLITE_OPEN_CREATE, out);
    if (opened == SQLITE_OK) return opened;
  }
  return base()->xOpen(base(), path, file, flags, out);
}

bool make() {
  static sqlite3_vfs vfs = *base();
  vfs.zName = kName;
  vfs.pNext = nullptr;
  vfs.xOpen = open_quietly;
  return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
}

}  // namespace

const char* quiet_vfs() {
  static const bool made = make();
  return made ? kName : nullptr;
}

}  // namespace stint::store
