#include "store/sqlite/sqlite_store.h"

#include <sqlite3.h>

#include <algorithm>
#include <set>
#include <variant>

#include "base/check.h"
#include "base/text.h"
#include "store/sqlite/database.h"
#include "store/sqlite/opening.h"
#include "store/sqlite/rows.h"
#include "store/wake_topic.h"

namespace stint::store {
namespace {

constexpr std::size_t kMostConnections = 4;
constexpr std::size_t kMostInBatch = 256;
// The first process to open the file reads the whole log again: short commands keep it short. A
// process that stays pays for a longer one once, and is not held up by copying it back all the
// time.
constexpr int kShortLog = 80;
constexpr int kLongLog = 2000;
constexpr unsigned kBatchesOfAStayer = 50;

using Rows = std::vector<Row>;

// Whatever the row is, the step does the same: nothing to look at.
bool blind(const Step& step) {
  if (step.kind == Step::Kind::Append) return true;
  return step.kind == Step::Kind::Set && step.expect == Expect::Any && !step.demand &&
         (step.timer == Step::TimerOp::Start || step.timer == Step::TimerOp::Stop);
}

// The rows that the steps are about, or the first step that does not hold.
Result<std::variant<Rows, Conflict>> rows_of(const Moment& moment, const std::vector<Step>& steps) {
  Rows rows;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (blind(steps[i])) {
      rows.emplace_back();
      continue;
    }
    auto row = moment.look(steps[i].key);
    if (!row) return row.error();
    if (!holds(steps[i], *row, moment.state(row->timer))) {
      return std::variant<Rows, Conflict>(Conflict{i});
    }
    rows.push_back(*row);
  }
  return std::variant<Rows, Conflict>(std::move(rows));
}

// The version that the record has afterwards.
Result<Version> apply_step(Database& db, const Moment& moment, const Step& step, const Row& row,
                           Mark& mark) {
  Version version = 0;
  Status applied;
  switch (step.kind) {
    case Step::Kind::Check: version = row.version; break;
    case Step::Kind::Set:
      version = ++mark.seq;
      applied = set_row(db, step, version, moment.planned(step, row));
      break;
    case Step::Kind::Touch:
      version = row.version;
      applied = touch_row(db, step, moment.planned(step, row));
      break;
    case Step::Kind::Remove:
      if (row.version == 0) break;
      ++mark.seq;
      applied = remove_row(db, step);
      break;
    case Step::Kind::Append: applied = append_row(db, step, ++mark.seq); break;
  }
  if (!applied) return applied.error();
  return version;
}

}  // namespace

// One commit() call that waits for its turn.
struct SqliteStore::Pending {
  const std::vector<Step>& steps;
  Sync sync;
  Result<CommitAnswer> answer = CommitAnswer(Conflict{});
  bool wrote = false;
};

// One read() call that waits for its turn.
struct SqliteStore::Asked {
  const std::vector<std::string>& keys;
  Result<Reading> answer = Reading{};
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
      wake_files_(options_.path + "-wake"),
      reads_(kMostInBatch, [this](const std::vector<Asked*>& batch) { read_batch(batch); }),
      commits_(kMostInBatch, [this](const std::vector<Pending*>& batch) { run_batch(batch); }) {}

SqliteStore::~SqliteStore() = default;

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const SqliteOptions& options,
                                                       const Clock& clock) {
  const auto created = make_file(options);
  if (!created) return created.error();
  std::unique_ptr<SqliteStore> store(new SqliteStore(options, clock));
  auto db = store->borrow();
  if (!db) return db.error();
  store->entered_file_ = (*db)->file_id();
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
  // A file that took the place of the one that was entered was never looked at: its life, its
  // boots.
  if (const auto file = borrowed->file_id(); entered_file_ && file != entered_file_) {
    borrowed.spoil();
    return moved_error();
  }
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

Error SqliteStore::moved_error() const {
  return unavailable(
      cat("the store ", quoted(options_.path), " was moved or deleted while in use"));
}

Result<Reading> SqliteStore::read(const std::vector<std::string>& keys) {
  Asked own{.keys = keys};
  reads_.run(own);
  return std::move(own.answer);
}

namespace {

Result<Reading> read_keys(Database& db, const Moment& moment,
                          const std::vector<std::string>& keys) {
  Reading out;
  for (const std::string& key : keys) {
    auto query = db.query("SELECT v, version, boot, fires_ns, ttl_ms FROM record WHERE k = ?");
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
}

}  // namespace

// One transaction for all that arrived together: the records are of one moment.
void SqliteStore::read_batch(const std::vector<Asked*>& batch) {
  const auto fail = [&batch](const Error& error) {
    for (Asked* asked : batch) asked->answer = error;
  };
  auto db = borrow();
  if (!db) return fail(db.error());
  if (auto begun = (*db)->run_often("BEGIN"); !begun) {
    db->spoil();
    return fail(begun.error());
  }
  const Moment moment(**db, boots_, clock_.mono().time_since_epoch());
  const WallTime wall = clock_.wall();
  for (Asked* asked : batch) {
    asked->answer = read_keys(**db, moment, asked->keys);
    if (!asked->answer) {
      db->spoil();
      continue;
    }
    asked->answer->store_wall = wall;
    asked->answer->store_time = moment.now();
  }
  if (auto ended = (*db)->run_often("COMMIT"); !ended) db->spoil();
  // A reading of a file that nobody else can reach any more tells nothing.
  if ((*db)->moved()) fail(moved_error());
}

Result<Reading> SqliteStore::scan(const ScanRange& range) {
  auto db = borrow();
  if (!db) return db.error();
  const Moment moment(**db, boots_, clock_.mono().time_since_epoch());
  Reading out{.entries = {}, .store_wall = clock_.wall(), .store_time = moment.now()};
  // Everything that begins with the prefix stands below the prefix with its highest successor.
  const std::string end = range.prefix + "\xFF";
  const std::string& low = range.backwards ? range.prefix : std::max(range.prefix, range.after);
  const std::string& high =
      range.backwards && !range.after.empty() ? std::min(range.after, end) : end;
  auto query =
      (*db)->query(range.backwards ? "SELECT k, v, version, boot, fires_ns, ttl_ms FROM record"
                                     " WHERE k >= ? AND k < ? ORDER BY k DESC LIMIT ?"
                                   : "SELECT k, v, version, boot, fires_ns, ttl_ms FROM record"
                                     " WHERE k >= ? AND k < ? ORDER BY k LIMIT ?");
  if (!query) return query.error();
  // `after` itself is left out: one more is asked for.
  constexpr std::size_t kMost = 1U << 30U;
  query->bind(1, low).bind(2, high).bind(
      3, static_cast<std::int64_t>(std::min(range.limit, kMost) + 1));
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
  if ((*db)->moved()) return moved_error();
  return out;
}

Result<CommitAnswer> SqliteStore::commit(const std::vector<Step>& steps, Sync sync) {
  CHECK(steps.size() <= kMaxSteps, "too many steps in one commit");
  for (const Step& step : steps) {
    if (step.key.size() > kMaxKeyBytes || step.value.size() > kMaxValueBytes) {
      return invalid(cat("the record ", quoted(step.key), " is too large"));
    }
  }
  Pending own{.steps = steps, .sync = sync};
  commits_.run(own);
  return std::move(own.answer);
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
  (*db)->set_checkpoint_frames(++batches_ > kBatchesOfAStayer ? kLongLog : kShortLog);
  if (auto begun = (*db)->run_often("BEGIN IMMEDIATE"); !begun) return begun;
  if (auto applied = apply_batch(**db, batch); !applied) {
    if (!(*db)->run("ROLLBACK")) db->spoil();
    return applied;
  }
  if ((*db)->moved()) {
    if (!(*db)->run("ROLLBACK")) db->spoil();
    return moved_error();
  }
  if (auto committed = (*db)->run_often("COMMIT"); !committed) {
    unknown = true;
    suspect_ = true;
    db->spoil();
    return committed;
  }
  if ((*db)->moved()) {
    unknown = true;  // it landed in a file that may or may not come back
    return moved_error();
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
    auto rows = rows_of(moment, pending->steps);
    if (!rows) return rows.error();
    if (const auto* conflict = std::get_if<Conflict>(&*rows)) {
      pending->answer = CommitAnswer(*conflict);
      continue;
    }
    Committed done;
    for (std::size_t i = 0; i < pending->steps.size(); ++i) {
      const Step& step = pending->steps[i];
      const auto version = apply_step(db, moment, step, std::get<Rows>(*rows)[i], *mark);
      if (!version) return version.error();
      pending->wrote |= step.kind != Step::Kind::Check;
      done.versions.push_back(*version);
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
      topics.insert(wake_topic(step.key));
    }
  }
  for (const std::string_view topic : topics) wake_files_.touch(topic);
}

Result<std::unique_ptr<Watch>> SqliteStore::watch(std::string_view key) {
  return wake_files_.watch(wake_topic(key));
}

Result<std::uint64_t> SqliteStore::appended(const std::string& prefix) {
  auto db = borrow();
  if (!db) return db.error();
  return count_appended(**db, prefix);
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
