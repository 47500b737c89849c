// The rows of a sqlite: store's tables, read and written one at a time inside a transaction.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "store/seam.h"
#include "store/sqlite/database.h"
#include "store/sqlite/reboot.h"

namespace stint::store {

struct Row {
  Version version = 0;
  std::optional<StoredTimer> timer;
};

// The timers and expectations of one transaction, at one moment.
class Moment {
 public:
  Moment(Database& db, const Boots& boots, Nanos now) : db_(db), boots_(boots), now_(now) {}

  Nanos now() const { return now_; }

  TimerState state(const std::optional<StoredTimer>& timer) const {
    if (!timer) return TimerState::None;
    return now_ < fires_now(*timer, boots_) ? TimerState::Running : TimerState::Fired;
  }

  Timer show(const std::optional<StoredTimer>& timer) const {
    if (!timer) return {};
    const auto left = std::chrono::ceil<Millis>(fires_now(*timer, boots_) - now_);
    return {.state = state(timer), .remaining = std::min(left, timer->ttl), .ttl = timer->ttl};
  }

  Result<Row> look(const std::string& key) const {
    auto query = db_.query("SELECT version, boot, fires_ns, ttl_ms FROM record WHERE k = ?");
    if (!query) return query.error();
    auto row = query->bind(1, key).step();
    if (!row) return row.error();
    if (!*row) return Row{};
    return Row{static_cast<Version>(query->number(0)), timer_at(*query, 1)};
  }

  static std::optional<StoredTimer> timer_at(const Query& query, int column) {
    if (query.is_null(column)) return std::nullopt;
    return StoredTimer{.boot = static_cast<std::size_t>(query.number(column)),
                       .fires_at = Nanos(query.number(column + 1)),
                       .ttl = Millis(query.number(column + 2))};
  }

  std::optional<StoredTimer> planned(const Step& step, const Row& row) const {
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

 private:
  Database& db_;
  const Boots& boots_;
  Nanos now_;
};

// Whether the step's expectation and demand are met by the row as it is.
bool holds(const Step& step, const Row& row, TimerState timer);

Status set_row(Database& db, const Step& step, Version version,
               const std::optional<StoredTimer>& timer);
Status touch_row(Database& db, const Step& step, const std::optional<StoredTimer>& timer);
Status remove_row(Database& db, const Step& step);
Status append_row(Database& db, const Step& step, Version version);

// The numbers from the oldest to the newest appended record: counting rows would read them all.
Result<std::uint64_t> count_appended(Database& db, const std::string& prefix);

// The last version given, and the time of the last commit.
struct Mark {
  Version seq = 0;
  Nanos last{0};
};

Result<Mark> read_mark(Database& db);
Status write_mark(Database& db, const Mark& mark);

}  // namespace stint::store
