// Readings and scans: their statements, and what comes back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/postgres/client.h"
#include "store/seam.h"

namespace stint::store::postgres {

extern const char* const kReadSql;
extern const char* const kReadShortSql;  // no row, and no time, where none of them is there
extern const char* const kAppendedSql;
std::string scan_sql(std::string_view order);

// The records as they came.
Result<Reading> reading_of(const Rows& rows);

// Those of a reading that were asked for, in that order; absent ones with version 0. REQUIRES: the
// entries of `from` are sorted by key.
std::vector<Entry> picked(const std::vector<Entry>& from, const std::vector<std::string>& keys);

}  // namespace stint::store::postgres
