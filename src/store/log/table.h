// All records of the store, in memory: by key for those who know it, in order for those who scan.
//
// Thread safety: none; its owner has a lock.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/log/key_index.h"
#include "store/log/sorted_records.h"
#include "store/moment.h"
#include "store/seam.h"

namespace stint::store::log {

class Table {
 public:
  using FoundRows = std::vector<std::pair<std::string, Row>>;

  // Null: there is none.
  const Row* find(std::string_view key) const;
  // A row of version 0 removes it.
  void put(std::string_view key, Row&& row);
  FoundRows scan(const Store::ScanRange& range) const;
  // From the first key greater than `after` on (empty: from the start), until `most` of them were
  // shown; false: there are no more.
  template <class Show>
  bool walk(std::string_view after, std::size_t most, const Show& show) const {
    auto at = after.empty() ? rows_.begin() : rows_.upper_bound(after);
    for (; at != rows_.end() && most > 0; --most) {
      const Record& record = rows_.next(at);
      show(record.key(), record.row);
    }
    return at != rows_.end();
  }
  // The number of the newest appended row under the prefix; 0: there is none.
  std::uint64_t newest(const std::string& prefix) const;
  std::size_t size() const { return rows_.size(); }

 private:
  friend class TableBuilder;
  SortedRecords rows_;
  KeyIndex index_;  // of the same
};

// A table from rows that come in the order of their keys, as a snapshot has them.
class TableBuilder {
 public:
  // About so many will come.
  void expect(std::size_t rows) { table_.index_.expect(rows); }
  // False, and nothing done: the key is not greater than all before.
  bool add(std::string_view key, Row&& row);
  Table finish() &&;

 private:
  Table table_;
};

}  // namespace stint::store::log
