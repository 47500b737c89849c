// One SQLite connection and its statements, with SQLite's answers turned into ours.
//
// Not thread-safe: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "os/files.h"

struct sqlite3;
struct sqlite3_stmt;

namespace stint::store {

class Database;

// A prepared statement in use; reset when it goes.
class Query {
 public:
  Query(Query&& other) noexcept;
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  Query& operator=(Query&&) = delete;
  ~Query();

  Query& bind(int at, std::int64_t number);
  Query& bind(int at, std::string_view text);         // the text must live until the query ends
  Query& bind_bytes(int at, std::string_view bytes);  // likewise
  Query& bind_null(int at);

  // True: a row is there. False: done.
  Result<bool> step();
  std::int64_t number(int column) const;
  std::string text(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  Query(Database& database, sqlite3_stmt* statement);
  Database* database_;
  sqlite3_stmt* statement_;
};

class Database {
 public:
  // REQUIRES: the file is there. `busy` bounds every wait for another process's lock.
  static Result<std::unique_ptr<Database>> open(const std::string& path, Millis busy);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Prepared once per text. REQUIRES: `sql` is a literal (kept by address).
  Result<Query> query(const char* sql);
  Status run(const char* sql);
  // One statement without rows, prepared once.
  Status run_often(const char* sql);
  // Moves everything from the log into the synced file and empties the log.
  Status copy_log_into_file();
  Status set_synced(bool synced);

  // The first process to open the file reads the whole log again: short commands keep it short. A
  // process that stays pays for a longer one once, and is not held up by copying it back all the
  // time; it also keeps more pages in memory.
  void set_stays(bool stays);

  // The file at the path is no longer the one that is open.
  bool moved() const;
  // Its log was removed or replaced: who writes on into it is alone with what it writes.
  bool log_taken_away();
  // The header of the log's index, shared by all processes; null if it cannot be had. Stays while a
  // connection to this file is open.
  const volatile std::uint32_t* log_index() const;

  // From SQLite's last error, with what to do about it.
  Error error() const;

 private:
  friend class Query;
  Database(std::string path, Millis busy) : path_(std::move(path)), busy_(busy) {}
  static int on_busy(void* self, int tries);
  static int on_commit(void* self, sqlite3* handle, const char* name, int frames);
  bool keep_waiting(int tries);

  std::string path_;
  std::optional<os::FileId> log_;  // the one that this connection writes
  Millis busy_;
  sqlite3* handle_ = nullptr;
  std::map<const char*, sqlite3_stmt*> statements_;
  int synced_ = -1;  // unknown
  int stays_ = -1;   // unknown
  bool may_wait_ = true;
  MonoTime waiting_since_{};
  std::string blocked_by_;
};

}  // namespace stint::store
