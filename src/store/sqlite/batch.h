// Commits that share one transaction, under the file's write lock.
//
//   Batch batch(db, cache, boots, now);     after BEGIN IMMEDIATE
//   batch.apply(steps, wrote) ...           each sees what the ones before it did
//   batch.finish()                          before COMMIT
//   batch.committed()                       after it: what was written is known to the cache
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/seam.h"
#include "store/sqlite/row_cache.h"
#include "store/sqlite/rows.h"

namespace stint::store {

class Batch {
 public:
  Batch(Database& db, RowCache& cache, const Boots& boots)
      : db_(db), cache_(cache), boots_(boots) {}

  Status begin(Nanos now, WallTime wall);
  // A fault spoils the whole transaction. `wrote` is set where something was written.
  Result<CommitAnswer> apply(const std::vector<Step>& steps, bool& wrote);
  Status finish();
  void committed();

 private:
  Result<Row> look(const std::string& key);
  Result<std::optional<Conflict>> first_conflict(const std::vector<Step>& steps,
                                                 std::vector<Row>& rows);
  // The version that the record has afterwards.
  Result<Version> write(const Step& step, const Row& row, bool looked);
  Status put(const std::string& key, Row row, bool looked);
  Result<std::uint64_t> next_number(const std::string& prefix);

  Database& db_;
  RowCache& cache_;
  const Boots& boots_;
  std::optional<Stamp> base_;
  std::optional<Moment> moment_;
  WallTime wall_{};
  Mark mark_;
  bool wrote_ = false;
  RowCache::Changes changes_;  // also what this transaction sees of itself
};

}  // namespace stint::store
