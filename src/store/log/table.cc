#include "store/log/table.h"

#include "store/append_key.h"

namespace stint::store::log {

const Row* Table::find(std::string_view key) const {
  const Record* found = index_.find(key);
  return found == nullptr ? nullptr : &found->row;
}

void Table::put(std::string_view key, Row&& row) {
  if (Record* found = index_.find(key)) {
    if (row.version != 0) {
      found->row = std::move(row);
      return;
    }
    index_.erase(key);
    rows_.erase(key);
    return;
  }
  if (row.version == 0) return;
  index_.insert(rows_.insert(Record::make(key, std::move(row))));
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
  while (first != last && out.size() < range.limit) {
    const Record& record = range.backwards ? rows_.previous(last) : rows_.next(first);
    out.emplace_back(record.key(), record.row);
  }
  return out;
}

std::uint64_t Table::newest(const std::string& prefix) const {
  auto after = rows_.upper_bound(append_key(prefix, 9'999'999'999'999'999));
  if (after == rows_.begin()) return 0;
  return append_number(prefix, rows_.previous(after).key());
}

bool TableBuilder::add(std::string_view key, Row&& row) {
  const Record* last = table_.rows_.last();
  if (last != nullptr && key <= last->key()) return false;
  if (row.version == 0) return true;
  table_.index_.gather(table_.rows_.push_back(Record::make(key, std::move(row))));
  return true;
}

Table TableBuilder::finish() && {
  table_.index_.settle();
  return std::move(table_);
}

}  // namespace stint::store::log
