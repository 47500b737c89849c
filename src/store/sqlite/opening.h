// Making, checking and entering the file of a sqlite: store.
#pragma once

#include "os/clock.h"
#include "store/reboot.h"
#include "store/seam.h"
#include "store/sqlite/sqlite_store.h"

namespace stint::store {

// Makes the file if it is missing and allowed; refuses file systems on which SQLite's locks or
// syncs cannot be relied on.
Result<bool> make_file(const SqliteOptions& options);

struct Entered {
  Opening opening;
  Boots boots;
};

// Checks the schema and the name of the clock, and applies the reboot rule.
Result<Entered> enter(Database& db, const SqliteOptions& options, Nanos now);

// The operator's word on a copy is complete.
Status accept_copy(Database& db);

}  // namespace stint::store
