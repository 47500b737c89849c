#include "store/sqlite/rows.h"

#include "store/append_key.h"

namespace stint::store {
namespace {

void bind_timer(Query& query, int at, const std::optional<StoredTimer>& timer) {
  if (!timer) {
    query.bind_null(at).bind_null(at + 1).bind_null(at + 2);
    return;
  }
  query.bind(at, static_cast<std::int64_t>(timer->boot)).bind(at + 1, timer->fires_at.count());
  query.bind(at + 2, timer->ttl.count());
}

Status finish(Result<Query>& query) {
  if (!query) return query.error();
  if (auto done = query->step(); !done) return done.error();
  return {};
}

}  // namespace

Result<Row> find_row(Database& db, const std::string& key) {
  auto query = db.query("SELECT v, version, boot, fires_ns, ttl_ms FROM record WHERE k = ?");
  if (!query) return query.error();
  auto row = query->bind(1, key).step();
  if (!row) return row.error();
  return *row ? row_at(*query, 0) : Row{};
}

Row row_at(const Query& query, int column) {
  Row row{.value = query.text(column),
          .version = static_cast<Version>(query.number(column + 1)),
          .timer = std::nullopt};
  if (!query.is_null(column + 2)) {
    row.timer = StoredTimer{.boot = static_cast<std::size_t>(query.number(column + 2)),
                            .fires_at = Nanos(query.number(column + 3)),
                            .ttl = Millis(query.number(column + 4))};
  }
  return row;
}

Status put_row(Database& db, const std::string& key, const Row& row) {
  auto query =
      db.query("REPLACE INTO record(k, v, version, boot, fires_ns, ttl_ms) VALUES(?,?,?,?,?,?)");
  if (query) {
    query->bind(1, key).bind(2, row.value).bind(3, static_cast<std::int64_t>(row.version));
    bind_timer(*query, 4, row.timer);
  }
  return finish(query);
}

Status remove_row(Database& db, const std::string& key) {
  auto query = db.query("DELETE FROM record WHERE k = ?");
  if (query) query->bind(1, key);
  return finish(query);
}

Result<std::uint64_t> newest_appended(Database& db, const std::string& prefix) {
  auto query = db.query("SELECT k FROM record WHERE k > ? AND k <= ? ORDER BY k DESC LIMIT 1");
  if (!query) return query.error();
  const std::string highest = append_key(prefix, 9'999'999'999'999'999);
  auto row = query->bind(1, prefix).bind(2, highest).step();
  if (!row) return row.error();
  return *row ? append_number(prefix, query->text(0)) : 0;
}

}  // namespace stint::store
