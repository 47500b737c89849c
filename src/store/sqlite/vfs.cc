#include "store/sqlite/vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstdint>

namespace stint::store {
namespace {

constexpr const char* kName = "stint";

sqlite3_vfs* base() {
  static sqlite3_vfs* const found = sqlite3_vfs_find(nullptr);
  return found;
}

// A log that is there is opened without the flag to create it: SQLite would sync its directory.
// Where it is not there, SQLite tries again for reading only, and finds the log that another
// process made in that moment: this connection would never write.
int open_quietly(sqlite3_vfs* /*vfs*/, const char* path, sqlite3_file* file, int flags, int* out) {
  const bool log = (flags & SQLITE_OPEN_WAL) != 0 && (flags & SQLITE_OPEN_CREATE) != 0;
  if (log) {
    int got = 0;
    const int opened = base()->xOpen(base(), path, file, flags & ~SQLITE_OPEN_CREATE, &got);
    if (opened == SQLITE_OK && (got & SQLITE_OPEN_READONLY) == 0) {
      if (out != nullptr) *out = got;
      return opened;
    }
    if (opened == SQLITE_OK) file->pMethods->xClose(file);
  }
  return base()->xOpen(base(), path, file, flags, out);
}

// What is left of the patience of the call under way; negative: no call of ours.
thread_local std::int64_t patience_us = -1;

int sleep_with_patience(sqlite3_vfs* /*vfs*/, int microseconds) {
  int length = microseconds;
  if (patience_us >= 0) {
    length = static_cast<int>(std::min<std::int64_t>(length, patience_us));
    patience_us -= length;
  }
  return length > 0 ? base()->xSleep(base(), length) : 0;
}

bool make() {
  static sqlite3_vfs vfs = *base();
  vfs.zName = kName;
  vfs.pNext = nullptr;
  vfs.xOpen = open_quietly;
  vfs.xSleep = sleep_with_patience;
  return sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
}

}  // namespace

PatienceScope::PatienceScope(Millis longest) {
  patience_us = std::chrono::microseconds(longest).count();
}
PatienceScope::~PatienceScope() { patience_us = -1; }

const char* quiet_vfs() {
  static const bool made = make();
  return made ? kName : nullptr;
}

}  // namespace stint::store
