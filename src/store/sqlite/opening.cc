#include "store/sqlite/opening.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/text.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/random.h"
#include "store/arrival.h"
#include "store/sqlite/database.h"
#include "store/sqlite/journal.h"

namespace stint::store {
namespace {

constexpr std::int64_t kSchema = 2;
constexpr std::int64_t kApplication = 0x53544E54;  // "STNT"

// One entry a schema version; entry N takes a file from version N to N + 1.
constexpr std::array<const char*, kSchema> kMigrations = {
    // k: the key. boot, fires_ns, ttl_ms: the timer (null: none); see reboot.h.
    "CREATE TABLE record(k TEXT PRIMARY KEY, v TEXT NOT NULL, version INTEGER NOT NULL,"
    " boot INTEGER, fires_ns INTEGER, ttl_ms INTEGER) WITHOUT ROWID;"
    "CREATE TABLE mark(id INTEGER PRIMARY KEY CHECK(id = 1), seq INTEGER NOT NULL,"
    " last_ns INTEGER NOT NULL);"
    "CREATE TABLE boot(id INTEGER PRIMARY KEY, boot_id TEXT NOT NULL, time_namespace TEXT NOT NULL,"
    " machine_id TEXT NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER,"
    " copied INTEGER NOT NULL, prolonged INTEGER NOT NULL);"
    "INSERT INTO mark VALUES(1, 0, 0);"
    "PRAGMA application_id=0x53544E54;"
    "PRAGMA user_version=1",
    // See journal.h. folded: the last of its rows that is in the table of records.
    // place: counted from the last fold.
    "CREATE TABLE journal(place INTEGER PRIMARY KEY, n INTEGER NOT NULL, changes BLOB NOT NULL);"
    "ALTER TABLE mark ADD COLUMN folded INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE mark ADD COLUMN folded_mark INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version=2"};

Result<std::int64_t> pragma(Database& db, const char* sql) {
  auto query = db.query(sql);
  if (!query) return query.error();
  auto row = query->step();
  if (!row) return row.error();
  return *row ? query->number(0) : 0;
}

// Complete before it gets its name: nobody ever sees a half-made store, and of several makers one
// wins.
Result<bool> make_complete(const std::string& path) {
  os::SystemRandom random;
  const std::string staged = cat(path, ".", random.id_hex(), ".new");
  {
    const os::Fd file(::open(staged.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return os::not_done("creating the store", path);
  }
  const auto build = [&]() -> Status {
    auto db = Database::open(staged, Millis(1000));
    if (!db) return db.error();
    // Records are small, and a commit writes every page that it touched: half of the usual size.
    if (auto done = (*db)->run("PRAGMA page_size=2048"); !done) return done;
    if (auto done = (*db)->run("BEGIN"); !done) return done;
    for (const char* migration : kMigrations) {
      if (auto done = (*db)->run(migration); !done) return done;
    }
    if (auto done = (*db)->run("COMMIT"); !done) return done;
    return (*db)->run("PRAGMA journal_mode=WAL");
  };
  Status made = build();
  const bool won = made && ::link(staged.c_str(), path.c_str()) == 0;
  if (made && !won && errno != EEXIST) {
    made = os::not_done("creating the store", path);
  }
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) os::remove_file(staged + suffix);
  if (!made) return made.error();
  return won;
}

Result<std::vector<BootRow>> read_boots(Database& db) {
  auto query = db.query(
      "SELECT boot_id, time_namespace, machine_id, first_ns, last_ns, copied, prolonged"
      " FROM boot ORDER BY id");
  if (!query) return query.error();
  std::vector<BootRow> rows;
  while (true) {
    auto row = query->step();
    if (!row) return row.error();
    if (!*row) return rows;
    rows.push_back(
        {.name = {.boot_id = query->text(0),
                  .time_namespace = query->text(1),
                  .machine_id = query->text(2)},
         .boot = {.first_open = Nanos(query->number(3)), .last_commit = Nanos(query->number(4))},
         .copied = query->number(5) != 0,
         .prolonged = query->number(6) != 0});
  }
}

struct NewBoot {
  const os::ClockName& name;
  Nanos now;
  bool copied;
  bool prolonged;
};

Status add_boot(Database& db, const NewBoot& boot) {
  auto close =
      db.query("UPDATE boot SET last_ns = (SELECT last_ns FROM mark) WHERE last_ns IS NULL");
  if (!close) return close.error();
  if (auto done = close->step(); !done) return done.error();
  auto insert = db.query(
      "INSERT INTO boot(boot_id, time_namespace, machine_id, first_ns, copied, prolonged)"
      " VALUES(?,?,?,?,?,?)");
  if (!insert) return insert.error();
  const os::ClockName& name = boot.name;
  insert->bind(1, name.boot_id).bind(2, name.time_namespace).bind(3, name.machine_id);
  insert->bind(4, boot.now.count()).bind(5, static_cast<std::int64_t>(boot.copied));
  insert->bind(6, static_cast<std::int64_t>(boot.prolonged));
  if (auto done = insert->step(); !done) return done.error();
  auto mark = db.query("UPDATE mark SET last_ns = ?");
  if (!mark) return mark.error();
  if (auto done = mark->bind(1, boot.now.count()).step(); !done) return done.error();
  return {};
}

// Whether a timer of any earlier boot was still running at the last commit.
Result<bool> any_timer_ran(Database& db, const std::vector<BootRow>& rows) {
  auto mark = pragma(db, "SELECT last_ns FROM mark");
  if (!mark) return mark.error();
  Boots boots;
  for (const BootRow& row : rows) boots.push_back(row.boot);
  auto query = db.query("SELECT boot, fires_ns, ttl_ms FROM record WHERE fires_ns IS NOT NULL");
  if (!query) return query.error();
  while (true) {
    auto row = query->step();
    if (!row) return row.error();
    if (!*row) return false;
    const StoredTimer timer{.boot = static_cast<std::size_t>(query->number(0)),
                            .fires_at = Nanos(query->number(1)),
                            .ttl = Millis(query->number(2))};
    if (fires_now(timer, boots) > Nanos(*mark)) return true;
  }
}

Status check_schema(Database& db, const std::string& path) {
  const auto application = pragma(db, "PRAGMA application_id");
  if (!application) return application.error();
  const auto version = pragma(db, "PRAGMA user_version");
  if (!version) return version.error();
  if (*application == 0 && *version == 0) {
    return unavailable(cat(quoted(path),
                           " is empty, and not a Stint store: name a file that is not there yet, "
                           "or put back what was in it"));
  }
  if (*application != kApplication) {
    return unavailable(cat(quoted(path), " is an SQLite database, but not a Stint store"));
  }
  if (*version > kSchema) {
    return unavailable(cat("the store ", quoted(path), " has schema version ", *version,
                           "; this stint knows versions up to ", kSchema, ". Use a newer stint"));
  }
  for (std::int64_t v = *version; v < kSchema; ++v) {
    if (auto done = db.run(kMigrations[static_cast<std::size_t>(v)]); !done) return done;
  }
  return {};
}

Status fold_all(Database& db) {
  auto read = read_journal(db, nullptr);
  if (!read) return read.error();
  os::SystemRandom random;
  const Journal& journal = read->journal;
  return fold(
      db, {journal.recent, {}}, journal.mark,
      {.folded = journal.at.top, .folded_mark = random.next() >> 1U, .top = journal.at.top});
}

Status enter_new_boot(Database& db, const SqliteOptions& options, Nanos now,
                      const std::vector<BootRow>& rows, Arrival kind) {
  const bool copy = kind == Arrival::Copy;
  if (copy && !options.accept_copy) return copied_error(options.path);
  bool prolonged = false;
  if (!rows.empty()) {
    // The journal's times are of the old boot's clock: nothing of it may be taken for the new
    // one's.
    if (auto folded = fold_all(db); !folded) return folded;
    const auto ran = any_timer_ran(db, rows);
    if (!ran) return ran.error();
    prolonged = *ran;
  }
  return add_boot(db, {options.clock_name, now, copy, prolonged});
}

Result<Arrival> arrival(Database& db, const std::vector<BootRow>& rows,
                        const SqliteOptions& options, Nanos now) {
  ClockReading reading{.now = now};
  if (!boots_are_named(rows, options.clock_name)) {
    const auto read = read_journal(db, nullptr);
    if (!read) return read.error();
    reading.last_commit = read->journal.mark.last;
  }
  return arrival_of(rows, options.clock_name, reading);
}

// Under the write lock: of several processes one sees the new boot first, the others find it
// entered.
Result<Entered> enter_locked(Database& db, const SqliteOptions& options, Nanos now) {
  if (auto ok = check_schema(db, options.path); !ok) return ok.error();
  auto rows = read_boots(db);
  if (!rows) return rows.error();
  Entered entered;
  const auto kind = arrival(db, *rows, options, now);
  if (!kind) return kind.error();
  switch (*kind) {
    case Arrival::SameBoot: break;
    case Arrival::UnnamedClock: return unnamed_clock_error(options.path);
    case Arrival::OtherNamespace:
      return namespace_error(options.path, rows->back().name, options.clock_name);
    case Arrival::FirstBoot:
    case Arrival::Reboot:
    case Arrival::Copy: {
      if (auto ok = enter_new_boot(db, options, now, *rows, *kind); !ok) return ok.error();
      rows = read_boots(db);
      if (!rows) return rows.error();
      break;
    }
  }
  entered.opening.copied = rows->back().copied;
  // Told at every opening of this boot: whoever entered it may have died before it was recorded.
  if (rows->back().prolonged) entered.opening.prolonged = cat("boot-", rows->size());
  if (entered.opening.copied && !options.accept_copy) return copied_error(options.path);
  for (const BootRow& row : *rows) entered.boots.push_back(row.boot);
  return entered;
}

}  // namespace

Result<bool> make_file(const SqliteOptions& options) {
  const std::string directory = os::parent_of(options.path);
  const bool there = os::exists(options.path);
  if (!there && !options.may_create) {
    return unavailable(cat("there is no store at ", quoted(options.path)));
  }
  if (!there) {
    if (auto made = os::make_directories(directory); !made) return made.error();
  }
  if (auto ok = check_filesystem("sqlite", directory); !ok) return ok.error();
  if (there) return false;
  return make_complete(options.path);
}

Result<Entered> enter(Database& db, const SqliteOptions& options, Nanos now) {
  // Reading first: nearly every opening finds the present boot and needs no write lock.
  const auto version = pragma(db, "PRAGMA user_version");
  if (version && *version == kSchema) {
    auto rows = read_boots(db);
    const auto kind = rows ? arrival(db, *rows, options, now) : rows.error();
    if (kind && *kind == Arrival::SameBoot) return enter_locked(db, options, now);
  }
  if (auto begun = db.set_synced(true); !begun) return begun.error();
  if (auto begun = db.run("BEGIN IMMEDIATE"); !begun) return begun.error();
  auto entered = enter_locked(db, options, now);
  const auto ended = db.run(entered ? "COMMIT" : "ROLLBACK");
  if (entered && !ended) return ended.error();
  return entered;
}

Status accept_copy(Database& db) {
  if (auto synced = db.set_synced(true); !synced) return synced;
  return db.run("UPDATE boot SET copied = 0");
}

}  // namespace stint::store
