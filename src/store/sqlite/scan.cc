#include "store/sqlite/scan.h"

#include <algorithm>
#include <iterator>

namespace stint::store {
namespace {

struct Bounds {
  std::string low;
  std::string high;  // itself not in it
};

Bounds bounds_of(const Store::ScanRange& range) {
  // Everything that begins with the prefix stands below the prefix with its highest successor.
  const std::string end = range.prefix + "\xFF";
  if (!range.backwards) return {std::max(range.prefix, range.after), end};
  return {range.prefix, range.after.empty() ? end : std::min(range.after, end)};
}

// What comes behind as many as were asked for is never reached.
template <class Iterator>
FoundRows first_rows(Iterator from, Iterator to, std::size_t limit) {
  FoundRows out;
  for (std::size_t live = 0; from != to && live <= limit; ++from) {
    if (from->second.version != 0) ++live;
    out.emplace_back(from->first, from->second);
  }
  return out;
}

}  // namespace

FoundRows scan_recent(const Recent& recent, const Store::ScanRange& range) {
  const Bounds bounds = bounds_of(range);
  if (bounds.high <= bounds.low) return {};
  const auto from = recent.lower_bound(bounds.low);
  const auto to = recent.lower_bound(bounds.high);
  if (!range.backwards) return first_rows(from, to, range.limit);
  return first_rows(std::make_reverse_iterator(to), std::make_reverse_iterator(from), range.limit);
}

namespace {

// Puts the journal's rows and the table's, as they come, into one order.
class Merge {
 public:
  Merge(const Store::ScanRange& range, const FoundRows& recent)
      : range_(range), recent_(recent), next_(recent.begin()) {}

  bool full() const { return out_.size() >= range_.limit; }
  void table_row(const std::string& key, Row row) {
    while (next_ != recent_.end() && before(next_->first, key)) take_next();
    // Where the journal has the same key, its row counts, and comes next.
    if (next_ == recent_.end() || next_->first != key) take(key, std::move(row));
  }
  FoundRows done() {
    while (next_ != recent_.end()) take_next();
    return std::move(out_);
  }

 private:
  bool before(const std::string& one, const std::string& other) const {
    return range_.backwards ? one > other : one < other;
  }
  void take_next() {
    take(next_->first, next_->second);
    ++next_;
  }
  void take(const std::string& key, Row row) {
    if (full() || row.version == 0 || key == range_.after) return;
    out_.emplace_back(key, std::move(row));
  }

  const Store::ScanRange& range_;
  const FoundRows& recent_;
  FoundRows::const_iterator next_;
  FoundRows out_;
};

}  // namespace

Result<FoundRows> scan_rows(Database& db, const Store::ScanRange& range, const FoundRows& recent,
                            TableRows& table) {
  constexpr std::size_t kMostKept = 64;
  auto query = db.query(range.backwards ? "SELECT k, v, version, boot, fires_ns, ttl_ms FROM record"
                                          " WHERE k >= ? AND k < ? ORDER BY k DESC"
                                        : "SELECT k, v, version, boot, fires_ns, ttl_ms FROM record"
                                          " WHERE k >= ? AND k < ? ORDER BY k");
  if (!query) return query.error();
  const Bounds bounds = bounds_of(range);
  query->bind(1, bounds.low).bind(2, bounds.high);
  Merge merge(range, recent);
  FoundRows seen;
  bool end = false;
  while (!end && !merge.full()) {
    auto there = query->step();
    if (!there) return there.error();
    end = !*there;
    if (end) break;
    std::string key = query->text(0);
    Row row = row_at(*query, 1);
    if (seen.size() <= kMostKept) seen.emplace_back(key, row);
    merge.table_row(key, std::move(row));
  }
  if (end && seen.size() <= kMostKept) {
    if (range.backwards) std::ranges::reverse(seen);
    table = std::move(seen);
  }
  return merge.done();
}

FoundRows scan_rows(const FoundRows& table, const Store::ScanRange& range,
                    const FoundRows& recent) {
  Merge merge(range, recent);
  if (range.backwards) {
    for (auto one = table.rbegin(); one != table.rend(); ++one) {
      merge.table_row(one->first, one->second);
    }
  } else {
    for (const auto& [key, row] : table) merge.table_row(key, row);
  }
  return merge.done();
}

}  // namespace stint::store
