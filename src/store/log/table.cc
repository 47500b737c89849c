#include "store/log/table.h"

#include <iterator>

#include "store/append_key.h"

namespace stint::store::log {

const Row* Table::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &found->second->second;
}

void Table::put(std::string_view key, Row&& row) {
  const auto found = index_.find(key);
  if (found != index_.end()) {
    const auto at = found->second;
    if (row.version != 0) {
      at->second = std::move(row);
      return;
    }
    index_.erase(found);
    rows_.erase(at);
    return;
  }
  if (row.version == 0) return;
  const auto at = rows_.emplace(std::string(key), std::move(row)).first;
  index_.emplace(at->first, at);
}

void Table::put_last(std::string&& key, Row&& row) {
  const auto at = rows_.emplace_hint(rows_.end(), std::move(key), std::move(row));
  index_.emplace(at->first, at);
}

Table::FoundRows Table::scan(const Store::ScanRange& range) const {
  FoundRows out;
  // Everything that begins with the prefix stands below the prefix with its highest successor.
  const std::string end = range.prefix + "\xFF";
  const bool beyond =
      range.backwards ? !range.after.empty() && range.after < range.prefix : range.after >= end;
  if (beyond) return out;
  auto first = rows_.lower_bound(range.prefix);
  auto last = rows_.lower_bound(end);
  const bool within = range.prefix <= range.after && range.after < end;
  if (within && !range.backwards) first = rows_.upper_bound(range.after);
  if (within && range.backwards && !range.after.empty()) last = rows_.lower_bound(range.after);
  const auto take = [&](auto from, auto to) {
    for (; from != to && out.size() < range.limit; ++from) {
      out.emplace_back(from->first, from->second);
    }
  };
  if (range.backwards) {
    take(std::make_reverse_iterator(last), std::make_reverse_iterator(first));
  } else {
    take(first, last);
  }
  return out;
}

std::uint64_t Table::newest(const std::string& prefix) const {
  auto after = rows_.upper_bound(append_key(prefix, 9'999'999'999'999'999));
  if (after == rows_.begin()) return 0;
  --after;
  return append_number(prefix, after->first);
}

}  // namespace stint::store::log
