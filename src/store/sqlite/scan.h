// Records in key order: those of the table with the journal's over them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/seam.h"
#include "store/sqlite/journal.h"

namespace stint::store {

using FoundRows = std::vector<std::pair<std::string, Row>>;

// As much of the journal as a scan can come across, in its direction; also what was removed.
FoundRows scan_recent(const Recent& recent, const Store::ScanRange& range);

// What a scan found in the table: all that stands there in its range, in key order, or nothing if
// it did not come to the end, or if that is much.
using TableRows = std::optional<FoundRows>;

// REQUIRES: `recent` is scan_recent() of the transaction that is open on `db`.
Result<FoundRows> scan_rows(Database& db, const Store::ScanRange& range, const FoundRows& recent,
                            TableRows& table);
// The same where it is known what the table has in the range.
FoundRows scan_rows(const FoundRows& table, const Store::ScanRange& range, const FoundRows& recent);

}  // namespace stint::store
