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

TimerState Moment::state(const std::optional<StoredTimer>& timer) const {
  if (!timer) return TimerState::None;
  return now_ < fires_now(*timer, boots_) ? TimerState::Running : TimerState::Fired;
}

Entry Moment::entry(std::string key, Row row) const {
  Entry out{
      .key = std::move(key), .value = std::move(row.value), .version = row.version, .timer = {}};
  if (row.timer) {
    const auto left = std::chrono::ceil<Millis>(fires_now(*row.timer, boots_) - now_);
    out.timer = {.state = state(row.timer),
                 .remaining = std::min(left, row.timer->ttl),
                 .ttl = row.timer->ttl};
  }
  return out;
}

std::optional<StoredTimer> Moment::planned(const Step& step, const Row& row) const {
  const Nanos full = now_ + step.ttl;
  const std::size_t boot = boots_.size() - 1;
  switch (step.timer) {
    case Step::TimerOp::Keep: return row.timer;
    case Step::TimerOp::Stop: return std::nullopt;
    case Step::TimerOp::Start: return StoredTimer{boot, full, step.ttl};
    case Step::TimerOp::Extend: {
      // An end that is later stays, with the length that it came from: a reboot gives that again.
      if (row.timer && fires_now(*row.timer, boots_) > full) return row.timer;
      return StoredTimer{boot, full, step.ttl};
    }
  }
  return row.timer;
}

bool Moment::holds(const Step& step, const Row& row) const {
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
  return !step.demand || *step.demand == state(row.timer);
}

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
