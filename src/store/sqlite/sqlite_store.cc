#include "store/sqlite/sqlite_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/text.h"
#include "store/append_key.h"
#include "store/sqlite/database.h"
#include "store/sqlite/opening.h"

namespace stint::store {
namespace {

constexpr std::size_t kMostConnections = 4;
constexpr std::size_t kMostInBatch = 256;

// Every key's wake-up topic: what comes after the first slash, so that the records of one resource
// share one; appended records share their prefix's.
std::string_view topic_of(std::string_view key) {
  const std::size_t slash = key.find('/');
  const std::string_view rest = slash == std::string_view::npos ? key : key.substr(slash + 1);
  return rest.empty() ? key : rest;
}

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

Result<std::uint64_t> last_appended(Database& db, const std::string& prefix) {
  auto query = db.query("SELECT k FROM record WHERE k > ? AND k <= ? ORDER BY k DESC LIMIT 1");
  if (!query) return query.error();
  const std::string highest = append_key(prefix, 9'999'999'999'999'999);
  auto row = query->bind(1, prefix).bind(2, highest).step();
  if (!row) return row.error();
  return *row ? append_number(prefix, query->text(0)) : 0;
}

Status append_row(Database& db, const Step& step, Version version) {
  const auto last = last_appended(db, step.key);
  if (!last) return last.error();
  const std::string key = append_key(step.key, *last + 1);
  auto query = db.query("INSERT INTO record(k, v, version) VALUES(?,?,?)");
  if (query) query->bind(1, key).bind(2, step.value).bind(3, static_cast<std::int64_t>(version));
  return finish(query);
}

struct Mark {
  Version seq = 0;
  Nanos last{0};
};

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

}  // namespace

// One commit() call that waits for its turn.
struct SqliteStore::Pending {
  const std::vector<Step>& steps;
  Sync sync;
  Result<CommitAnswer> answer = CommitAnswer(Conflict{});
  bool wrote = false;

  enum State { Waiting, Lead, Done };
  std::atomic<int> state = Waiting;
};

// A connection on loan; goes back to the pool, or is closed if it was not healthy.
class SqliteStore::Borrowed {
 public:
  Borrowed(SqliteStore& store, std::unique_ptr<Database> db) : store_(&store), db_(std::move(db)) {}
  Borrowed(Borrowed&&) noexcept = default;
  Borrowed& operator=(Borrowed&&) = delete;
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    if (db_) store_->give_back(std::move(db_), healthy_);
  }
  Database& operator*() const { return *db_; }
  Database* operator->() const { return db_.get(); }
  void spoil() { healthy_ = false; }

 private:
  SqliteStore* store_;
  std::unique_ptr<Database> db_;
  bool healthy_ = true;
};

SqliteStore::SqliteStore(SqliteOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      capabilities_{.name = "sqlite",
                    .clock = Capabilities::ClockKind::Monotonic,
                    .smallest_ttl = Millis(100),
                    .ttl_grain = Millis(1),
                    .step = Millis(1),
                    .failover_restarts_timers = false,
                    .durable = true,
                    .relaxed_renewals = true,
                    .may_lose = "releases and progress of the last moments, in a power cut"},
      wake_files_(options_.path + "-wake") {}

SqliteStore::~SqliteStore() = default;

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const SqliteOptions& options,
                                                       const Clock& clock) {
  const auto created = make_file(options);
  if (!created) return created.error();
  std::unique_ptr<SqliteStore> store(new SqliteStore(options, clock));
  auto db = store->borrow();
  if (!db) return db.error();
  auto entered = enter(**db, options, clock.mono().time_since_epoch());
  if (!entered) return entered.error();
  store->opening_ = entered->opening;
  store->opening_.created = *created;
  store->boots_ = entered->boots;
  return store;
}

Result<SqliteStore::Borrowed> SqliteStore::borrow() {
  {
    MutexLock lock(mutex_);
    while (idle_.empty() && open_ >= kMostConnections) returned_.wait(lock);
    if (!idle_.empty()) {
      auto db = std::move(idle_.back());
      idle_.pop_back();
      return Borrowed(*this, std::move(db));
    }
    ++open_;
  }
  auto db = Database::open(options_.path, options_.busy);
  if (!db) {
    const MutexLock lock(mutex_);
    --open_;
    return db.error();
  }
  Borrowed borrowed(*this, std::move(*db));
  if (suspect_) {
    if (auto copied = borrowed->copy_log_into_file(); !copied) {
      borrowed.spoil();
      return copied.error();
    }
    suspect_ = false;
  }
  return borrowed;
}

void SqliteStore::give_back(std::unique_ptr<Database> connection, bool healthy) {
  {
    const MutexLock lock(mutex_);
    if (healthy) {
      idle_.push_back(std::move(connection));
    } else {
      --open_;
    }
  }
  returned_.notify_one();
}

// A reading of a file that nobody else can reach any more tells nothing.
Result<Reading> SqliteStore::checked(const Database& db, Result<Reading> reading) const {
  if (reading && db.moved()) {
    return unavailable(cat("the store ", quoted(options_.path), " was moved or deleted while in use"));
  }
  return reading;
}

Result<Reading> SqliteStore::read(const std::vector<std::string>& keys) {
  auto db = borrow();
  if (!db) return db.error();
  const auto get = [&]() -> Result<Reading> {
    // One transaction: the records are of one moment.
    if (auto begun = (*db)->run_often("BEGIN"); !begun) return begun.error();
    const Moment moment(**db, boots_, clock_.mono().time_since_epoch());
    Reading out{.entries = {}, .store_wall = clock_.wall(), .store_time = moment.now()};
    for (const std::string& key : keys) {
      auto query = (*db)->query("SELECT v, version, boot, fires_ns, ttl_ms FROM record WHERE k = ?");
      if (!query) return query.error();
      auto row = query->bind(1, key).step();
      if (!row) return row.error();
      Entry& entry = out.entries.emplace_back();
      entry.key = key;
      if (!*row) continue;
      entry.value = query->text(0);
      entry.version = static_cast<Version>(query->number(1));
      entry.timer = moment.show(Moment::timer_at(*query, 2));
    }
    return out;
  };
  auto reading = get();
  if (auto ended = (*db)->run_often("COMMIT"); !ended || !reading) db->spoil();
  return checked(**db, std::move(reading));
}

Result<Reading> SqliteStore::scan(const ScanRange& range) {
  auto db = borrow();
  if (!db) return db.error();
  const Moment moment(**db, boots_, clock_.mono().time_since_epoch());
  Reading out{.entries = {}, .store_wall = clock_.wall(), .store_time = moment.now()};
  // Everything that begins with the prefix stands below the prefix with its highest successor.
  const std::string end = range.prefix + "\xFF";
  const std::string& low = range.backwards ? range.prefix : std::max(range.prefix, range.after);
  const std::string& high = range.backwards && !range.after.empty() ? std::min(range.after, end) : end;
  auto query = (*db)->query(range.backwards
                                ? "SELECT k, v, version, boot, fires_ns, ttl_ms FROM record"
                                  " WHERE k >= ? AND k < ? ORDER BY k DESC LIMIT ?"
                                : "SELECT k, v, version, boot, fires_ns, ttl_ms FROM record"
                                  " WHERE k >= ? AND k < ? ORDER BY k LIMIT ?");
  if (!query) return query.error();
  // `after` itself is left out: one more is asked for.
  constexpr std::size_t kMost = 1U << 30U;
  query->bind(1, low).bind(2, high).bind(3, static_cast<std::int64_t>(std::min(range.limit, kMost) + 1));
  while (true) {
    auto row = query->step();
    if (!row) return row.error();
    if (!*row || out.entries.size() == range.limit) break;
    if (!range.backwards && query->text(0) == range.after) continue;
    out.entries.push_back({.key = query->text(0),
                           .value = query->text(1),
                           .version = static_cast<Version>(query->number(2)),
                           .timer = moment.show(Moment::timer_at(*query, 3))});
  }
  return checked(**db, std::move(out));
}

Result<CommitAnswer> SqliteStore::commit(const std::vector<Step>& steps, Sync sync) {
  CHECK(steps.size() <= kMaxSteps, "too many steps in one commit");
  for (const Step& step : steps) {
    if (step.key.size() > kMaxKeyBytes || step.value.size() > kMaxValueBytes) {
      return invalid(cat("the record ", quoted(step.key), " is too large"));
    }
  }
  Pending own{.steps = steps, .sync = sync};
  {
    const MutexLock lock(queue_mutex_);
    queue_.push_back(&own);
    if (!led_) {
      led_ = true;
      own.state = Pending::Lead;
    }
  }
  own.state.wait(Pending::Waiting);
  if (own.state == Pending::Lead) lead(own);
  return std::move(own.answer);
}

// Runs batches until its own commit is done, then hands over to the next in line.
void SqliteStore::lead(Pending& own) {
  while (own.state != Pending::Done) {
    std::vector<Pending*> batch;
    {
      const MutexLock lock(queue_mutex_);
      while (!queue_.empty() && batch.size() < kMostInBatch) {
        batch.push_back(queue_.front());
        queue_.pop_front();
      }
    }
    run_batch(batch);
    for (Pending* pending : batch) {
      pending->state = Pending::Done;
      // From here on the others may be gone.
      if (pending != &own) pending->state.notify_one();
    }
  }
  Pending* next = nullptr;
  {
    const MutexLock lock(queue_mutex_);
    if (queue_.empty()) {
      led_ = false;
    } else {
      next = queue_.front();
    }
  }
  if (next != nullptr) {
    next->state = Pending::Lead;
    next->state.notify_one();
  }
}

void SqliteStore::run_batch(const std::vector<Pending*>& batch) {
  bool unknown = false;
  const Status done = commit_batch(batch, unknown);
  if (done) {
    wake(batch);
    return;
  }
  for (Pending* pending : batch) {
    Error error = done.error();
    // Only who wrote cannot know; a conflict is still a conflict, but of an unfinished transaction.
    if (unknown && pending->wrote) error.code = Code::UnknownOutcome;
    pending->answer = error;
  }
}

// A commit whose sync failed is unknown, and its pages in the cache are not to be believed: the
// connection is closed, and the next one copies the log into the file before anything else.   G11
Status SqliteStore::commit_batch(const std::vector<Pending*>& batch, bool& unknown) {
  auto db = borrow();
  if (!db) return db.error();
  bool wants_sync = false;
  for (const Pending* pending : batch) wants_sync |= pending->sync == Sync::Durable;
  if (auto set = (*db)->set_synced(wants_sync); !set) return set;
  if (auto begun = (*db)->run_often("BEGIN IMMEDIATE"); !begun) return begun;
  if (auto applied = apply_batch(**db, batch); !applied) {
    if (!(*db)->run("ROLLBACK")) db->spoil();
    return applied;
  }
  if (auto committed = (*db)->run_often("COMMIT"); !committed) {
    unknown = true;
    suspect_ = true;
    db->spoil();
    return committed;
  }
  if ((*db)->moved()) {
    db->spoil();
    return unavailable(cat("the store ", quoted(options_.path), " was moved or deleted while in use"));
  }
  return {};
}

Status SqliteStore::apply_batch(Database& db, const std::vector<Pending*>& batch) {
  auto mark = read_mark(db);
  if (!mark) return mark.error();
  mark->last = std::max(mark->last, clock_.mono().time_since_epoch());
  const Moment moment(db, boots_, mark->last);
  const WallTime wall = clock_.wall();
  bool wrote = false;
  for (Pending* pending : batch) {
    std::vector<Row> rows;
    std::optional<std::size_t> conflict;
    for (std::size_t i = 0; i < pending->steps.size() && !conflict; ++i) {
      const Step& step = pending->steps[i];
      if (step.kind == Step::Kind::Append) {
        rows.emplace_back();
        continue;
      }
      auto row = moment.look(step.key);
      if (!row) return row.error();
      if (!holds(step, *row, moment.state(row->timer))) conflict = i;
      rows.push_back(std::move(*row));
    }
    if (conflict) {
      pending->answer = CommitAnswer(Conflict{*conflict});
      continue;
    }
    Committed done;
    for (std::size_t i = 0; i < pending->steps.size(); ++i) {
      const Step& step = pending->steps[i];
      Version version = rows[i].version;
      Status applied;
      switch (step.kind) {
        case Step::Kind::Check: break;
        case Step::Kind::Set:
          version = ++mark->seq;
          applied = set_row(db, step, version, moment.planned(step, rows[i]));
          break;
        case Step::Kind::Touch:
          applied = touch_row(db, step, moment.planned(step, rows[i]));
          break;
        case Step::Kind::Remove:
          version = 0;
          if (rows[i].version != 0) {
            ++mark->seq;
            applied = remove_row(db, step);
          }
          break;
        case Step::Kind::Append:
          version = 0;
          applied = append_row(db, step, ++mark->seq);
          break;
      }
      if (!applied) return applied;
      pending->wrote |= step.kind != Step::Kind::Check;
      done.versions.push_back(version);
      done.granted_ttl.push_back(step.ttl);
    }
    wrote |= pending->wrote;
    done.revision = mark->seq;
    done.store_wall = wall;
    done.store_time = moment.now();
    pending->answer = CommitAnswer(std::move(done));
  }
  return wrote ? write_mark(db, *mark) : Status();
}

void SqliteStore::wake(const std::vector<Pending*>& batch) const {
  std::set<std::string_view> topics;
  for (const Pending* pending : batch) {
    if (!pending->wrote) continue;
    for (const Step& step : pending->steps) {
      if (step.kind == Step::Kind::Check || step.kind == Step::Kind::Touch) continue;
      topics.insert(topic_of(step.key));
    }
  }
  for (const std::string_view topic : topics) wake_files_.touch(topic);
}

Result<std::unique_ptr<Watch>> SqliteStore::watch(std::string_view key) {
  return wake_files_.watch(topic_of(key));
}

Result<std::uint64_t> SqliteStore::revision() {
  auto db = borrow();
  if (!db) return db.error();
  auto mark = read_mark(**db);
  if (!mark) return mark.error();
  return mark->seq;
}

Status SqliteStore::accept() {
  auto db = borrow();
  if (!db) return db.error();
  return accept_copy(**db);
}

}  // namespace stint::store
