// All records of the store, in memory: by key for those who know it, in order for those who scan.
//
// Thread safety: none; its owner has a lock.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

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
  // The same for a key that is greater than all there are.
  void put_last(std::string&& key, Row&& row);
  void expect(std::size_t rows) { index_.reserve(rows); }

  FoundRows scan(const Store::ScanRange& range) const;
  // From the first key greater than `after` on (empty: from the start), until `most` of them were
  // shown; false: there are no more.
  template <class Show>
  bool walk(const std::string& after, std::size_t most, const Show& show) const {
    auto at = after.empty() ? rows_.begin() : rows_.upper_bound(after);
    for (; at != rows_.end() && most > 0; ++at, --most) show(at->first, at->second);
    return at != rows_.end();
  }
  // The number of the newest appended row under the prefix; 0: there is none.
  std::uint64_t newest(const std::string& prefix) const;
  std::size_t size() const { return rows_.size(); }

 private:
  using Rows = std::map<std::string, Row, std::less<>>;
  Rows rows_;
  // The keys are those of the rows, which stay where they are.
  std::unordered_map<std::string_view, Rows::iterator> index_;
};

}  // namespace stint::store::log
