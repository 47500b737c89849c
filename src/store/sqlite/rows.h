// The rows of a sqlite: store's tables, read and written one at a time inside a transaction.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "store/seam.h"
#include "store/sqlite/database.h"
#include "store/sqlite/reboot.h"

namespace stint::store {

struct Row {
  std::string value;
  Version version = 0;  // 0: there is no such row
  std::optional<StoredTimer> timer;
};

// The timers of one transaction, at one moment.
class Moment {
 public:
  Moment(const Boots& boots, Nanos now) : boots_(boots), now_(now) {}

  Nanos now() const { return now_; }
  TimerState state(const std::optional<StoredTimer>& timer) const;
  Entry entry(std::string key, Row row) const;
  // The row's timer after the step.
  std::optional<StoredTimer> planned(const Step& step, const Row& row) const;
  // Whether the step's expectation and demand are met by the row as it is.
  bool holds(const Step& step, const Row& row) const;

 private:
  const Boots& boots_;
  Nanos now_;
};

Result<Row> find_row(Database& db, const std::string& key);
// The row at a query's columns value, version, boot, fires_ns, ttl_ms, from `column` on.
Row row_at(const Query& query, int column);
Status put_row(Database& db, const std::string& key, const Row& row);
Status remove_row(Database& db, const std::string& key);

// The number of the newest appended row under the prefix; 0: there is none.
Result<std::uint64_t> newest_appended(Database& db, const std::string& prefix);

// The last version given, and the time of the last commit.
struct Mark {
  Version seq = 0;
  Nanos last{0};
};

}  // namespace stint::store
