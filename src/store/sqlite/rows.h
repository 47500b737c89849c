// The rows of a sqlite: store's tables, read and written one at a time inside a transaction.
#pragma once

#include <string>

#include "store/moment.h"
#include "store/seam.h"
#include "store/sqlite/database.h"

namespace stint::store {

Result<Row> find_row(Database& db, const std::string& key);
// The row at a query's columns value, version, boot, fires_ns, ttl_ms, from `column` on.
Row row_at(const Query& query, int column);
Status put_row(Database& db, const std::string& key, const Row& row);
Status remove_row(Database& db, const std::string& key);

// The number of the newest appended row under the prefix; 0: there is none.
Result<std::uint64_t> newest_appended(Database& db, const std::string& prefix);

}  // namespace stint::store
