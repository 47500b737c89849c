#include "store/sqlite/scan.h"

#include <algorithm>
#include <iterator>
#include <optional>

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

Result<FoundRows> scan_rows(Database& db, const Store::ScanRange& range, const FoundRows& recent) {
  auto query = db.query(range.backwards ? "SELECT k, v, version, boot, fires_ns, ttl_ms FROM record"
                                          " WHERE k >= ? AND k < ? ORDER BY k DESC"
                                        : "SELECT k, v, version, boot, fires_ns, ttl_ms FROM record"
                                          " WHERE k >= ? AND k < ? ORDER BY k");
  if (!query) return query.error();
  const Bounds bounds = bounds_of(range);
  query->bind(1, bounds.low).bind(2, bounds.high);
  const auto before = [&](const std::string& one, const std::string& other) {
    return range.backwards ? one > other : one < other;
  };
  FoundRows out;
  const auto take = [&](std::string key, Row row) {
    if (out.size() == range.limit || row.version == 0 || key == range.after) return;
    out.emplace_back(std::move(key), std::move(row));
  };
  auto next = recent.begin();
  while (out.size() < range.limit) {
    auto there = query->step();
    if (!there) return there.error();
    const auto key = *there ? std::optional(query->text(0)) : std::nullopt;
    for (; next != recent.end() && (!key || before(next->first, *key)); ++next) {
      take(next->first, next->second);
    }
    if (!key) break;
    // Where the journal has the same key, its row counts, and comes next.
    if (next == recent.end() || next->first != *key) take(*key, row_at(*query, 1));
  }
  return out;
}

}  // namespace stint::store
