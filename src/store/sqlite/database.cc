#include "store/sqlite/database.h"

#include <sqlite3.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/lock_holder.h"
#include "os/pause.h"
#include "os/random.h"
#include "store/sqlite/vfs.h"

namespace stint::store {
namespace {

// Byte of the -shm file that SQLite locks while a process writes (its WAL_WRITE_LOCK).
constexpr long kWriteLockByte = 120;
constexpr Millis kNameTheHolderAfter{1000};
constexpr std::string_view kAnothers =
    "this user may not write it: a store of files belongs to one user";

MonoTime now() { return os::SystemClock().mono(); }

}  // namespace

// ---- Query

Query::Query(Database& database, sqlite3_stmt* statement)
    : database_(&database), statement_(statement) {}

Query::Query(Query&& other) noexcept : database_(other.database_), statement_(other.statement_) {
  other.statement_ = nullptr;
}

Query::~Query() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Query& Query::bind(int at, std::int64_t number) {
  CHECK(sqlite3_bind_int64(statement_, at, number) == SQLITE_OK, "no such parameter");
  return *this;
}

Query& Query::bind(int at, std::string_view text) {
  const int done =
      sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  CHECK(done == SQLITE_OK, "no such parameter");
  return *this;
}

Query& Query::bind_bytes(int at, std::string_view bytes) {
  const int done = sqlite3_bind_blob(statement_, at, bytes.data(), static_cast<int>(bytes.size()),
                                     SQLITE_STATIC);
  CHECK(done == SQLITE_OK, "no such parameter");
  return *this;
}

Query& Query::bind_null(int at) {
  CHECK(sqlite3_bind_null(statement_, at) == SQLITE_OK, "no such parameter");
  return *this;
}

Result<bool> Query::step() {
  const PatienceScope patience(database_->busy_);
  switch (sqlite3_step(statement_)) {
    case SQLITE_ROW: return true;
    case SQLITE_DONE: return false;
    default: return database_->error();
  }
}

std::int64_t Query::number(int column) const { return sqlite3_column_int64(statement_, column); }

std::string Query::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return bytes == nullptr ? std::string() : std::string(bytes, size);
}

bool Query::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

// ---- Database

Result<std::unique_ptr<Database>> Database::open(const std::string& path, Millis busy) {
  std::unique_ptr<Database> db(new Database(path, busy));
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (sqlite3_open_v2(path.c_str(), &db->handle_, flags, quiet_vfs()) != SQLITE_OK)
    return db->error();
  sqlite3_busy_handler(db->handle_, &Database::on_busy, db.get());
  // The last one out would copy the log back and delete it, several syncs at the end of every
  // `run`.
  sqlite3_db_config(db->handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_db_config(db->handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return db;
}

Database::~Database() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(handle_);
}

Result<Query> Database::query(const char* sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (statement == nullptr) {
    const PatienceScope patience(busy_);
    const unsigned flags = SQLITE_PREPARE_PERSISTENT;
    if (sqlite3_prepare_v3(handle_, sql, -1, flags, &statement, nullptr) != SQLITE_OK)
      return error();
  }
  return Query(*this, statement);
}

Status Database::run(const char* sql) {
  const PatienceScope patience(busy_);
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error();
  return {};
}

Status Database::run_often(const char* sql) {
  auto statement = query(sql);
  if (!statement) return statement.error();
  if (auto done = statement->step(); !done) return done.error();
  return {};
}

Status Database::copy_log_into_file() {
  if (auto synced = set_synced(true); !synced) return synced;
  auto checkpoint = query("PRAGMA wal_checkpoint(TRUNCATE)");
  if (!checkpoint) return checkpoint.error();
  auto row = checkpoint->step();
  if (!row) return row.error();
  if (*row && checkpoint->number(0) == 0) return {};
  return unavailable(cat("the store ", quoted(path_), " is busy after a failed sync; try again"));
}

Status Database::set_synced(bool synced) {
  if (synced_ == static_cast<int>(synced)) return {};
  auto done = run(synced ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
  if (done) synced_ = static_cast<int>(synced);
  return done;
}

void Database::set_stays(bool stays) {
  if (stays_ == static_cast<int>(stays)) return;
  stays_ = static_cast<int>(stays);
  sqlite3_wal_hook(handle_, &Database::on_commit, this);
  // If it cannot be had, the default does.
  if (stays) {
    [[maybe_unused]] const bool done =
        run("PRAGMA cache_size=-16000; PRAGMA secure_delete=0").has_value();
  }
}

// A log that was copied back is begun anew by the next commit of the same process. Processes of one
// commit each never come to that: the next one finds the log on the disk as it was, and it would
// grow for ever. So one that is too long is cut off, unless somebody is reading it.
int Database::on_commit(void* self, sqlite3* handle, const char* name, int frames) {
  constexpr int kShortLog = 32;
  constexpr int kTooLong = 48;
  constexpr int kLongLog = 2000;
  auto& db = *static_cast<Database*>(self);
  if (frames < (db.stays_ == 1 ? kLongLog : kShortLog)) return SQLITE_OK;
  const bool cut = db.stays_ != 1 && frames >= kTooLong;
  db.may_wait_ = false;
  // The commit is done whatever becomes of this: the next one tries again.
  sqlite3_wal_checkpoint_v2(
      handle, name, cut ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  db.may_wait_ = true;
  return SQLITE_OK;
}

bool Database::moved() const {
  int moved = 0;
  sqlite3_file_control(handle_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return moved != 0;
}

// While a connection is open nobody of ours removes the log.
bool Database::log_taken_away() {
  const auto log = os::file_id(path_ + "-wal");
  if (!log_) log_ = log;
  if (log == log_) return false;
  // What stands in the lost log must not be copied over what others have written since.
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return true;
}

const volatile std::uint32_t* Database::log_index() const {
  constexpr int kFirstRegion = 0;
  constexpr int kRegionBytes = 32 * 1024;
  sqlite3_file* file = nullptr;
  sqlite3_file_control(handle_, "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (file == nullptr || file->pMethods->iVersion < 2) return nullptr;
  volatile void* memory = nullptr;
  if (file->pMethods->xShmMap(file, kFirstRegion, kRegionBytes, 0, &memory) != SQLITE_OK) {
    return nullptr;
  }
  return static_cast<const volatile std::uint32_t*>(memory);
}

int Database::on_busy(void* self, int tries) {
  return static_cast<Database*>(self)->keep_waiting(tries) ? 1 : 0;
}

// SQLite's own waiting starves all but one of several busy processes: the longer one has waited,
// the more seldom it asks. Short, random pauses keep them level.
bool Database::keep_waiting(int tries) {
  if (!may_wait_) return false;
  const MonoTime start = now();
  if (tries == 0) {
    waiting_since_ = start;
    blocked_by_.clear();
  }
  const Nanos waited = start - waiting_since_;
  if (waited >= busy_) return false;
  if (waited >= kNameTheHolderAfter && blocked_by_.empty()) {
    blocked_by_ = os::describe_lock_holder(path_ + "-shm", kWriteLockByte);
  }
  os::SystemRandom random;
  const std::uint64_t longest = waited < std::chrono::milliseconds(20) ? 200'000 : 2'000'000;
  os::pause_for(Nanos(50'000 + random.below(longest)));
  return true;
}

Error Database::error() const {
  const int code = handle_ == nullptr ? SQLITE_CANTOPEN : sqlite3_errcode(handle_) & 0xFF;
  const std::string detail = handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_);
  const std::string file = quoted(path_);
  switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED: {
      const std::string who = blocked_by_.empty() ? "another process" : blocked_by_;
      return unavailable(cat("the store ", file, " is locked by ", who, "; gave up after ",
                             format_duration(busy_)));
    }
    case SQLITE_PROTOCOL: {  // another is putting the log in order, and does not end
      const std::string who = os::describe_lock_holder(path_ + "-shm", kWriteLockByte);
      return unavailable(cat("the store ", file, " is locked by ",
                             who.empty() ? "another process" : who, "; gave up waiting"));
    }
    case SQLITE_READONLY: {
      const std::string what = cat("the store ", file, " cannot be written: ");
      if (!os::may_write(path_)) return {Code::Denied, cat(what, kAnothers)};
      return unavailable(cat(what, "it or its directory is read-only"));
    }
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return unavailable(cat("the store ", file, " is damaged or is not a Stint store (", detail,
                             "); nothing was changed. Restore it from a backup"));
    case SQLITE_FULL: return unavailable(cat("the disk of the store ", file, " is full"));
    case SQLITE_CANTOPEN: {
      const std::string what = cat("cannot open the store ", file, ": ");
      if (!os::may_write(path_)) return {Code::Denied, cat(what, kAnothers)};
      return unavailable(cat(what, detail));
    }
    default: return unavailable(cat("the store ", file, ": ", detail));
  }
}

}  // namespace stint::store
