#include "store/sqlite/sqlite_store.h"

#include <sqlite3.h>

#include <array>
#include <set>

#include "base/text.h"
#include "os/files.h"
#include "store/append_key.h"
#include "store/commit_together.h"
#include "store/file_rights.h"
#include "store/sqlite/batch.h"
#include "store/sqlite/database.h"
#include "store/sqlite/opening.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/scan.h"
#include "store/steps.h"
#include "store/wake_topic.h"

namespace stint::store {
namespace {

constexpr std::size_t kMostConnections = 4;
constexpr unsigned kBatchesOfAStayer = 50;
// A process that is about to go leaves little for the next one to read.
constexpr JournalLimits kShortJournal = {.rows = 64, .bytes = 65'536, .removed = 500};
constexpr JournalLimits kLongJournal = {.rows = 1000, .bytes = 1'048'576, .removed = 500};

}  // namespace

// One commit() call that waits for its turn.
struct SqliteStore::Pending {
  const std::vector<Step>& steps;
  Sync sync;
  Result<CommitAnswer> answer = CommitAnswer(Conflict{});
  bool wrote = false;
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

// All that is read in it is of one moment. A connection whose transaction did not end well is
// closed.
class SqliteStore::ReadTransaction {
 public:
  explicit ReadTransaction(Borrowed& db) : db_(db) {}
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;
  ~ReadTransaction() {
    if (open_) db_.spoil();
  }
  Status begin() {
    open_ = true;
    return db_->run_often("BEGIN");
  }
  void end() { open_ = !db_->run_often("COMMIT"); }

 private:
  Borrowed& db_;
  bool open_ = false;
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
                    .may_be_left = true,
                    .may_lose = "releases and progress of the last moments, in a power cut"},
      wake_files_(options_.path + "-wake"),
      commits_([this](const std::vector<Pending*>& batch) { run_batch(batch); }) {}

SqliteStore::~SqliteStore() = default;

Result<std::unique_ptr<SqliteStore>> SqliteStore::open(const SqliteOptions& options,
                                                       const Clock& clock) {
  const auto created = make_file(options);
  if (!created) return created.error();
  std::unique_ptr<SqliteStore> store(new SqliteStore(options, clock));
  auto db = store->borrow(Use::Write);
  if (!db) return db.error();
  store->entered_file_ = os::file_id(options.path);
  if ((*db)->moved() || !store->entered_file_) return store->moved_error();
  auto entered = enter(**db, options, clock.mono().time_since_epoch());
  if (!entered) return entered.error();
  store->view_.attach((*db)->log_index());
  store->opening_ = entered->opening;
  store->opening_.created = *created;
  store->boots_ = entered->boots;
  return store;
}

// Every commit empties the page caches of all connections but its own: so commits keep to one, and
// who only reads leaves it to them, if the process is here to stay. Null: open another.
std::unique_ptr<Database> SqliteStore::take_idle(Use use) {
  const bool spares = use == Use::Read && batches_ > kBatchesOfAStayer && open_ < kMostConnections;
  // The last that was used is the warmest.
  auto found = idle_.rend();
  for (auto db = idle_.rbegin(); db != idle_.rend(); ++db) {
    const bool wanted = (db->get() == writer_) == (use == Use::Write);
    if (wanted || (!spares && found == idle_.rend())) found = db;
    if (wanted) break;
  }
  if (found == idle_.rend()) return nullptr;
  auto db = std::move(*found);
  idle_.erase(std::next(found).base());
  return db;
}

Result<SqliteStore::Borrowed> SqliteStore::borrow(Use use) {
  std::unique_ptr<Database> idle;
  {
    MutexLock lock(mutex_);
    while (idle_.empty() && open_ >= kMostConnections) returned_.wait(lock);
    idle = take_idle(use);
    if (!idle) ++open_;
  }
  auto borrowed = idle ? lend(std::move(idle)) : open_another();
  if (!borrowed) return borrowed.error();
  if (use == Use::Write) {
    const MutexLock lock(mutex_);
    writer_ = &**borrowed;
  }
  // Also one that lay idle while another's sync failed.
  if (const std::uint64_t failed = failed_syncs_; failed != copied_after_) {
    if (auto copied = (*borrowed)->copy_log_into_file(); !copied) {
      borrowed->spoil();
      return copied.error();
    }
    copied_after_ = failed;
  }
  return borrowed;
}

Result<SqliteStore::Borrowed> SqliteStore::lend(std::unique_ptr<Database> idle) {
  Borrowed borrowed(*this, std::move(idle));
  if (!borrowed->log_taken_away()) return borrowed;
  borrowed.spoil();
  return moved_error();
}

// It is counted already.
Result<SqliteStore::Borrowed> SqliteStore::open_another() {
  auto db = Database::open(options_.path, options_.busy);
  if (!db) {
    std::unique_ptr<Database> idle;
    {
      const MutexLock lock(mutex_);
      --open_;
      if (!idle_.empty()) {
        idle = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    // No more files may be open, say: the one that was to be spared will do.
    if (idle) return lend(std::move(idle));
    returned_.notify_one();
    return entered_file_ && !in_place() ? moved_error() : db.error();
  }
  Borrowed borrowed(*this, std::move(*db));
  // A file that took the place of the one that was entered was never looked at: its life, its
  // boots.
  if (entered_file_ && (borrowed->moved() || !in_place())) {
    borrowed.spoil();
    return moved_error();
  }
  return borrowed;
}

bool SqliteStore::in_place() const { return os::file_id(options_.path) == entered_file_; }

void SqliteStore::give_back(std::unique_ptr<Database> connection, bool healthy) {
  {
    const MutexLock lock(mutex_);
    if (healthy) {
      idle_.push_back(std::move(connection));
    } else {
      --open_;
      if (writer_ == connection.get()) writer_ = nullptr;
    }
  }
  // The view looks at memory that goes with the last connection.
  if (!healthy) view_.detach();
  returned_.notify_one();
}

Error SqliteStore::moved_error() const {
  return unavailable(
      cat("the store ", quoted(options_.path), " was moved or deleted while in use"));
}

Result<Reading> SqliteStore::read(const std::vector<std::string>& keys) {
  const Moment moment(boots_, clock_.mono().time_since_epoch());
  auto rows = view_.find(keys);
  if (!rows) {
    auto read = read_rows(keys);
    if (!read) return read.error();
    rows = std::move(*read);
  }
  // A reading of a file that nobody else can reach any more tells nothing.
  if (!in_place()) return moved_error();
  Reading out{.entries = {}, .store_wall = clock_.wall(), .store_time = moment.now()};
  out.entries.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    out.entries.push_back(moment.entry(keys[i], std::move((*rows)[i])));
  }
  return out;
}

// In one transaction: the records are of one moment. What did not change meanwhile is kept.
Result<std::vector<Row>> SqliteStore::read_rows(const std::vector<std::string>& keys) {
  auto db = borrow(Use::Read);
  if (!db) return db.error();
  ReadTransaction transaction(*db);
  if (auto begun = transaction.begin(); !begun) return begun.error();
  auto known = view_.look(**db, keys);
  if (!known) return known.error();
  std::vector<Row> out;
  View::Rows from_table;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (known->rows[i]) {
      out.push_back(std::move(*known->rows[i]));
      continue;
    }
    auto row = find_row(**db, keys[i]);
    if (!row) return row.error();
    out.push_back(*row);
    from_table.emplace(keys[i], std::move(*row));
  }
  transaction.end();
  view_.add(known->at, from_table);
  return out;
}

Result<Reading> SqliteStore::scan(const ScanRange& range) {
  const Moment moment(boots_, clock_.mono().time_since_epoch());
  auto rows = view_.find(range);
  if (!rows) {
    auto read = scan_rows(range);
    if (!read) return read.error();
    rows = std::move(*read);
  }
  if (!in_place()) return moved_error();
  Reading out{.entries = {}, .store_wall = clock_.wall(), .store_time = moment.now()};
  out.entries.reserve(rows->size());
  for (auto& [key, row] : *rows) {
    out.entries.push_back(moment.entry(std::move(key), std::move(row)));
  }
  return out;
}

Result<FoundRows> SqliteStore::scan_rows(const ScanRange& range) {
  auto db = borrow(Use::Read);
  if (!db) return db.error();
  ReadTransaction transaction(*db);
  if (auto begun = transaction.begin(); !begun) return begun.error();
  auto recent = view_.look(**db, range);
  if (!recent) return recent.error();
  TableRows table;
  auto rows = store::scan_rows(**db, range, recent->rows, table);
  if (!rows) return rows.error();
  transaction.end();
  if (table) view_.add(recent->at, range, std::move(*table));
  return rows;
}

Result<CommitAnswer> SqliteStore::commit(const std::vector<Step>& steps, Sync sync) {
  if (auto ok = check_sizes(steps); !ok) return ok.error();
  Pending own{.steps = steps, .sync = sync};
  commits_.run(own);
  return std::move(own.answer);
}

std::vector<Result<CommitAnswer>> SqliteStore::commit_many(const std::vector<Proposal>& proposals) {
  return commit_together(commits_, proposals);
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
  auto db = borrow(Use::Write);
  if (!db) return db.error();
  bool wants_sync = false;
  for (const Pending* pending : batch) wants_sync |= pending->sync == Sync::Durable;
  if (auto set = (*db)->set_synced(wants_sync); !set) return set;
  const bool stays = ++batches_ > kBatchesOfAStayer;
  (*db)->set_stays(stays);
  if (auto begun = (*db)->run_often("BEGIN IMMEDIATE"); !begun) return begun;
  if (!view_.attached()) view_.attach((*db)->log_index());
  Batch transaction(**db, view_, boots_);
  if (auto applied = apply_batch(transaction, batch, stays); !applied || !in_place()) {
    if (!(*db)->run("ROLLBACK")) db->spoil();
    return applied ? moved_error() : applied;
  }
  if (auto committed = (*db)->run_often("COMMIT"); !committed) {
    unknown = true;
    ++failed_syncs_;
    db->spoil();
    return committed;
  }
  transaction.committed();
  if (!in_place()) {
    unknown = true;  // it landed in a file that may or may not come back
    return moved_error();
  }
  return {};
}

Status SqliteStore::apply_batch(Batch& transaction, const std::vector<Pending*>& batch,
                                bool stays) {
  const auto begun = transaction.begin(clock_.mono().time_since_epoch(), clock_.wall());
  if (!begun) return begun;
  for (Pending* pending : batch) {
    auto answer = transaction.apply(pending->steps, pending->wrote);
    if (!answer) return answer.error();
    pending->answer = std::move(*answer);
  }
  return transaction.finish(stays ? kLongJournal : kShortJournal);
}

void SqliteStore::wake(const std::vector<Pending*>& batch) {
  if (!wake_files_.anyone()) return;
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

// The oldest go first: a scan from the start would step over all that went since the last fold.
std::string SqliteStore::before_oldest(const std::string& prefix) {
  const MutexLock lock(mutex_);
  const auto found = oldest_.find(prefix);
  if (found == oldest_.end() || found->second == 0) return "";
  return append_key(prefix, found->second - 1);
}

// From the oldest to the newest: counting would read them all. Who has appended lately knows the
// newest without looking.
Result<std::uint64_t> SqliteStore::appended(const std::string& prefix) {
  const auto known = view_.newest_known(prefix);
  std::array<std::uint64_t, 2> ends{0, known.value_or(0)};
  for (const bool newest : {false, true}) {
    if (newest && ends[1] >= ends[0] && known) break;
    auto one = scan({.prefix = prefix,
                     .after = newest ? std::string() : before_oldest(prefix),
                     .limit = 1,
                     .backwards = newest});
    if (!one) return one.error();
    if (one->entries.empty()) return 0;
    ends[newest ? 1 : 0] = append_number(prefix, one->entries.front().key);
  }
  const MutexLock lock(mutex_);
  oldest_[prefix] = ends[0];
  return ends[1] - ends[0] + 1;
}

Result<std::vector<Finding>> SqliteStore::examine() {
  const std::string& path = options_.path;
  return std::vector<Finding>{
      file_rights({.own = {path, path + "-wal", path + "-shm"}, .around = os::parent_of(path)})};
}

Result<std::uint64_t> SqliteStore::revision() {
  auto db = borrow(Use::Read);
  if (!db) return db.error();
  ReadTransaction transaction(*db);
  if (auto begun = transaction.begin(); !begun) return begun.error();
  auto journal = read_journal(**db, nullptr);
  if (!journal) return journal.error();
  transaction.end();
  return journal->journal.mark.seq;
}

Status SqliteStore::accept() {
  auto db = borrow(Use::Read);
  if (!db) return db.error();
  return accept_copy(**db);
}

}  // namespace stint::store
