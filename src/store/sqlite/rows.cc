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

constexpr const char* kOldestAppended =
    "SELECT k FROM record WHERE k > ? AND k <= ? ORDER BY k LIMIT 1";
constexpr const char* kNewestAppended =
    "SELECT k FROM record WHERE k > ? AND k <= ? ORDER BY k DESC LIMIT 1";

// The number of the oldest or newest appended record; 0: there is none.
Result<std::uint64_t> appended_at_end(Database& db, const std::string& prefix, const char* end) {
  auto query = db.query(end);
  if (!query) return query.error();
  const std::string highest = append_key(prefix, 9'999'999'999'999'999);
  auto row = query->bind(1, prefix).bind(2, highest).step();
  if (!row) return row.error();
  return *row ? append_number(prefix, query->text(0)) : 0;
}

}  // namespace

bool holds(const Step& step, const Row& row, TimerState timer) {
  switch (step.expect) {
    case Expect::Any: break;
    case Expect::Absent:
      if (row.version != 0) return false;
      break;
    case Expect::Seen:
      if (row.version != step.version) return false;
      break;
  }
  if (step.kind == Step::Kind::Touch && row.version == 0) return false;
  return !step.demand || *step.demand == timer;
}

Status set_row(Database& db, const Step& step, Version version,
               const std::optional<StoredTimer>& timer) {
  auto query = db.query(
      "INSERT INTO record(k, v, version, boot, fires_ns, ttl_ms) VALUES(?,?,?,?,?,?)"
      " ON CONFLICT(k) DO UPDATE SET v=excluded.v, version=excluded.version, boot=excluded.boot,"
      " fires_ns=excluded.fires_ns, ttl_ms=excluded.ttl_ms");
  if (query) {
    query->bind(1, step.key).bind(2, step.value).bind(3, static_cast<std::int64_t>(version));
    bind_timer(*query, 4, timer);
  }
  return finish(query);
}

Status touch_row(Database& db, const Step& step, const std::optional<StoredTimer>& timer) {
  auto query = db.query("UPDATE record SET boot = ?, fires_ns = ?, ttl_ms = ? WHERE k = ?");
  if (query) {
    bind_timer(*query, 1, timer);
    query->bind(4, step.key);
  }
  return finish(query);
}

Status remove_row(Database& db, const Step& step) {
  auto query = db.query("DELETE FROM record WHERE k = ?");
  if (query) query->bind(1, step.key);
  return finish(query);
}

Status append_row(Database& db, const Step& step, Version version) {
  const auto last = appended_at_end(db, step.key, kNewestAppended);
  if (!last) return last.error();
  const std::string key = append_key(step.key, *last + 1);
  auto query = db.query("INSERT INTO record(k, v, version) VALUES(?,?,?)");
  if (query) query->bind(1, key).bind(2, step.value).bind(3, static_cast<std::int64_t>(version));
  return finish(query);
}

Result<std::uint64_t> count_appended(Database& db, const std::string& prefix) {
  const auto oldest = appended_at_end(db, prefix, kOldestAppended);
  if (!oldest) return oldest.error();
  const auto newest = appended_at_end(db, prefix, kNewestAppended);
  if (!newest) return newest.error();
  return *newest == 0 ? 0 : *newest - *oldest + 1;
}

Result<Mark> read_mark(Database& db) {
  auto query = db.query("SELECT seq, last_ns FROM mark");
  if (!query) return query.error();
  auto row = query->step();
  if (!row) return row.error();
  if (!*row) return unavailable("the store has lost its mark: it is damaged");
  return Mark{static_cast<Version>(query->number(0)), Nanos(query->number(1))};
}

Status write_mark(Database& db, const Mark& mark) {
  auto query = db.query("UPDATE mark SET seq = ?, last_ns = ?");
  if (query) query->bind(1, static_cast<std::int64_t>(mark.seq)).bind(2, mark.last.count());
  return finish(query);
}

}  // namespace stint::store
