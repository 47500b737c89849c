// The guard of a SQLite database that is the user's own: the fence is a row of the table
// `stint_fences`, and check and write are one transaction. Behind include/stint/guard_sqlite.h.
//
// It is the user's SQLite that is called: through the functions that they hand over, nothing here
// links another copy.
#pragma once

#include <sqlite3.h>

#include <string>
#include <variant>

#include "api/fences.h"
#include "guard/guard.h"

namespace stint::guard {

struct SqliteCalls {
  decltype(&sqlite3_prepare_v2) prepare;
  decltype(&sqlite3_bind_text) bind_text;
  decltype(&sqlite3_bind_int64) bind_int64;
  decltype(&sqlite3_step) step;
  decltype(&sqlite3_finalize) finalize;
  decltype(&sqlite3_column_type) column_type;
  decltype(&sqlite3_column_text) column_text;
  decltype(&sqlite3_column_bytes) column_bytes;
  decltype(&sqlite3_column_int64) column_int64;
  decltype(&sqlite3_get_autocommit) get_autocommit;
  decltype(&sqlite3_errmsg) errmsg;
};

struct SqliteLet {
  bool already = false;  // once: this very write was accepted before. seal: the fence stood there
};
using SqliteVerdict = std::variant<SqliteLet, Refused>;

// REQUIRES: inside a transaction of the caller's. Takes the write lock, and keeps it until that
// ends. `fences` null: a token above the fence is Unavailable. Errors: see guard_sqlite.h.
Result<SqliteVerdict> admit_sqlite(const SqliteCalls& calls, sqlite3* db, const Pass& pass,
                                   const std::string& digest, api::Fences* fences);

// In the caller's transaction, else in one of its own.
Result<SqliteVerdict> seal_sqlite(const SqliteCalls& calls, sqlite3* db, const Pass& pass,
                                  api::Fences& fences);

}  // namespace stint::guard
