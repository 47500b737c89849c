// The guard for your own SQLite database: the check and your write are one transaction.
//
//   sqlite3_exec(db, "BEGIN IMMEDIATE", ...);
//   auto admitted = stint::guard::admit(db, {.resource = holder.resource(),
//                                            .token = holder.token(),
//                                            .generation = holder.generation()}, &client);
//   if (!admitted) { sqlite3_exec(db, "ROLLBACK", ...); return stop(); }
//   ... your statements ...
//   sqlite3_exec(db, "COMMIT", ...);
//
// The fence is a row of the table `stint_fences`, made in your database (schema main) by the first
// seal. Seal when you have acquired the lease and before your first read; from then on nothing
// older lands. SQLite has one writer at a time: who has admitted keeps every other one out, also a
// seal, until the transaction ends. A frozen process in the middle of one holds up the database for
// all, guard or not.
//
// It is your SQLite that is called, through the <sqlite3.h> that you compile with: nothing here
// links another copy. Thread safety: that of your connection.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <string>

#include "stint/outcome.h"

namespace stint {
class Client;
}

namespace stint::guard {

// What a writer shows.
struct SqlitePass {
  std::string resource = {};
  std::uint64_t token = 0;
  std::string generation = {};
  // One accepted write per grant; a repeat with the same key and digest is answered `already`.
  bool once = false;
  std::string key = {};
  std::string digest = {};
  // STINT_CLAIM, in a run: with it a token is noticed that a restored store has issued twice.
  std::string claim = {};
};

struct SqliteAdmitted {
  bool already = false;  // once: this very write was accepted before. seal: the fence stood there
};

// A refusal is an answer, not a fault. Nothing was changed: roll back, and do not write.
struct SqliteRefused {
  Code code = Code::Stale;  // Stale, Used, NeverIssued, NeverGranted, Foreign, NoToken
  std::string message = {};
  std::uint64_t fence = 0;  // where it stands; 0: nowhere
};

using SqliteAnswer = Outcome<SqliteAdmitted, SqliteRefused>;

namespace detail {

// The functions of your SQLite.
struct SqliteCalls {
  decltype(&sqlite3_prepare_v2) prepare;
  decltype(&sqlite3_bind_text) bind_text;
  decltype(&sqlite3_bind_int64) bind_int64;
  decltype(&sqlite3_step) step;
  decltype(&sqlite3_finalize) finalize;
  decltype(&sqlite3_column_type) column_type;
  decltype(&sqlite3_column_text) column_text;
  decltype(&sqlite3_column_bytes) column_bytes;
  decltype(&sqlite3_column_int64) column_int64;
  decltype(&sqlite3_get_autocommit) get_autocommit;
  decltype(&sqlite3_errmsg) errmsg;
};
inline SqliteCalls sqlite_calls() {
  return {&sqlite3_prepare_v2,     &sqlite3_bind_text,    &sqlite3_bind_int64,
          &sqlite3_step,           &sqlite3_finalize,     &sqlite3_column_type,
          &sqlite3_column_text,    &sqlite3_column_bytes, &sqlite3_column_int64,
          &sqlite3_get_autocommit, &sqlite3_errmsg};
}

SqliteAnswer admit(const SqliteCalls& calls, sqlite3* db, const SqlitePass& pass,
                   const Client* client);
SqliteAnswer seal(const SqliteCalls& calls, sqlite3* db, const SqlitePass& pass,
                  const Client& client);

}  // namespace detail

// REQUIRES: inside a transaction of yours, best begun with BEGIN IMMEDIATE: a deferred one that has
// read before may be told that others have written since (Unavailable: roll back and begin anew).
// Takes the write lock, and keeps it until your transaction ends. `client`: asked only for a token
// above the fence; null: such a token is Unavailable ("seal first").
//
// Errors: Invalid (words that make no sense, or no transaction), Unavailable (busy, a damaged
// fence, the store not reached). Nothing was changed; roll back.
inline SqliteAnswer admit(sqlite3* db, const SqlitePass& pass, const Client* client = nullptr) {
  return detail::admit(detail::sqlite_calls(), db, pass, client);
}

// Raises the fence and writes nothing else: in your transaction, else in one of its own.
// UnknownOutcome: its commit failed half-way; sealing again is safe.
inline SqliteAnswer seal(sqlite3* db, const SqlitePass& pass, const Client& client) {
  return detail::seal(detail::sqlite_calls(), db, pass, client);
}

}  // namespace stint::guard
