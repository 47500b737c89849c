// Commits that share one transaction, under the file's write lock.
//
//   Batch batch(db, view, boots);           after BEGIN IMMEDIATE
//   batch.begin(now, wall)
//   batch.apply(steps, wrote) ...           each sees what the ones before it did
//   batch.finish(limits)                    before COMMIT: all changes as one row of the journal
//   batch.committed()                       after it: what was written is known to the view
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/seam.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/view.h"

namespace stint::store {

// The table is brought up to date when the journal has grown beyond one of them. The next process
// to open the file reads all of it; and a scan steps over every row of the table that is gone.
struct JournalLimits {
  std::uint64_t rows;
  std::uint64_t bytes;
  std::size_t removed;
};

class Batch {
 public:
  Batch(Database& db, View& view, const Boots& boots) : db_(db), view_(view), boots_(boots) {}

  Status begin(Nanos now, WallTime wall);
  // A fault spoils the whole transaction. `wrote` is set where something was written.
  Result<CommitAnswer> apply(const std::vector<Step>& steps, bool& wrote);
  Status finish(const JournalLimits& limits);
  void committed();

 private:
  Result<Row> look(const std::string& key, View::Part part);
  Result<std::optional<Conflict>> first_conflict(const std::vector<Step>& steps,
                                                 std::vector<Row>& rows);
  // The version that the record has afterwards.
  Result<Version> write(const Step& step, const Row& row);
  Result<std::uint64_t> next_number(const std::string& prefix);

  Database& db_;
  View& view_;
  const Boots& boots_;
  View::Base base_;
  std::optional<Moment> moment_;
  WallTime wall_{};
  bool wrote_ = false;
  View::Done done_;        // its changes are also what this transaction sees of itself
  View::Rows from_table_;  // what it had to read there
  std::map<std::string, std::uint64_t, std::less<>> newest_;  // by prefix: the last number given
};

}  // namespace stint::store
