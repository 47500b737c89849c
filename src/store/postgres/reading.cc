#include "store/postgres/reading.h"

#include <algorithm>

#include "base/text.h"

namespace stint::store::postgres {

// Where one of the records is certainly there its row brings the time along; the other way costs
// two nodes more.
const char* const kReadShortSql =
    "SELECT clock_timestamp(), r.key, r.value, r.version, r.at, r.fires_at, r.ttl_ms"
    " FROM $S.record r WHERE r.key = ANY ($1)";

const char* const kReadSql =
    "SELECT t.now, r.key, r.value, r.version, r.at, r.fires_at, r.ttl_ms"
    " FROM (SELECT clock_timestamp() AS now) t LEFT JOIN $S.record r ON r.key = ANY ($1)";

// An appended record is shown when every transaction with a lower number has ended: none can then
// appear before it. Those of an earlier epoch have all ended.
std::string scan_sql(std::string_view order) {
  return cat(
      "SELECT t.now, r.key, r.value, r.version, r.at, r.fires_at, r.ttl_ms"
      " FROM (SELECT clock_timestamp() AS now,"
      " txid_snapshot_xmin(txid_current_snapshot()) AS lowest,"
      " (SELECT m.epoch FROM $S.meta m) AS epoch) t"
      " LEFT JOIN LATERAL (SELECT * FROM $S.record s WHERE s.key >= $1 AND s.key < $2"
      " AND s.key <> $3 AND (s.xid IS NULL OR s.xid < t.lowest OR s.epoch < t.epoch)"
      " ORDER BY s.key ",
      order, " LIMIT $4) r ON true");
}

// Counted by the numbers of the first and the last: counting rows would read them all.
const char* const kAppendedSql =
    "SELECT coalesce((SELECT r.nth FROM $S.record r WHERE r.key >= $1 AND r.key < $2"
    " ORDER BY r.key DESC LIMIT 1) - (SELECT r.nth FROM $S.record r WHERE r.key >= $1"
    " AND r.key < $2 ORDER BY r.key LIMIT 1) + 1, 0)";

namespace {

enum ReadColumn { kNow, kKey, kValue, kVersion, kAt, kFiresAt, kTtl, kReadColumns };

Result<Timer> timer_of(const Rows& rows, int row, std::int64_t now) {
  if (rows.is_null(row, kFiresAt)) return Timer{};
  const auto at = rows.instant(row, kAt);
  const auto fires = rows.instant(row, kFiresAt);
  const auto ttl = rows.bigint(row, kTtl);
  if (!at) return at.error();
  if (!fires) return fires.error();
  if (!ttl) return ttl.error();
  // The clock may have been set back: never beyond what the record has seen.   G4
  const std::chrono::microseconds left(*fires - std::max(now, *at));
  return Timer{.state = left.count() > 0 ? TimerState::Running : TimerState::Fired,
               .remaining = std::min(std::chrono::ceil<Millis>(left), Millis(*ttl)),
               .ttl = Millis(*ttl)};
}

Result<Entry> entry_of(const Rows& rows, int row, std::int64_t now) {
  auto key = rows.bytes(row, kKey);
  auto value = rows.bytes(row, kValue);
  const auto version = rows.bigint(row, kVersion);
  auto timer = timer_of(rows, row, now);
  if (!key) return key.error();
  if (!value) return value.error();
  if (!version) return version.error();
  if (!timer) return timer.error();
  if (*version <= 0) return unavailable("the server's answer is damaged: a version below one");
  return Entry{.key = std::move(*key),
               .value = std::move(*value),
               .version = static_cast<Version>(*version),
               .timer = *timer};
}

}  // namespace

Result<Reading> reading_of(const Rows& rows) {
  if (auto ok = rows.expect_columns(kReadColumns); !ok) return ok.error();
  const auto now = rows.instant(0, kNow);
  if (!now) return now.error();
  Reading out;
  out.store_wall = wall_from_ms(*now / 1000);
  out.store_time = std::chrono::microseconds(*now);
  for (int row = 0; row < rows.count(); ++row) {
    if (rows.is_null(row, kKey)) continue;  // there was none: the row carries the time alone
    auto entry = entry_of(rows, row, *now);
    if (!entry) return entry.error();
    out.entries.push_back(std::move(*entry));
  }
  return out;
}

std::vector<Entry> picked(const std::vector<Entry>& from, const std::vector<std::string>& keys) {
  std::vector<Entry> out;
  out.reserve(keys.size());
  for (const std::string& key : keys) {
    const auto at = std::ranges::lower_bound(from, key, {}, &Entry::key);
    out.push_back(at == from.end() || at->key != key ? Entry{} : *at);
    out.back().key = key;
  }
  return out;
}

}  // namespace stint::store::postgres
