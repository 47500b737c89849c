// G5: the write lock of the database is taken before the fence is read and kept by the user's
// transaction, so that what was judged stands until its writes are committed.
#include "guard/sqlite_guard.h"

#include "base/text.h"

namespace stint::guard {
namespace {

constexpr const char* kTable =
    "CREATE TABLE IF NOT EXISTS main.stint_fences (resource TEXT PRIMARY KEY NOT NULL, generation "
    "TEXT NOT NULL, token INTEGER NOT NULL, used INTEGER NOT NULL, key TEXT NOT NULL, digest TEXT "
    "NOT NULL, claim TEXT NOT NULL) WITHOUT ROWID";
// Changes nothing, and takes the write lock.
constexpr const char* kLock = "UPDATE main.stint_fences SET token = token WHERE false";
// A table that an earlier version made.
constexpr const char* kWiden =
    "ALTER TABLE main.stint_fences ADD COLUMN claim TEXT NOT NULL DEFAULT ''";
constexpr const char* kRead =
    "SELECT generation, token, used, key, digest, claim FROM main.stint_fences WHERE resource = "
    "?1";
constexpr const char* kWrite =
    "INSERT INTO main.stint_fences (resource, generation, token, used, key, digest, claim) VALUES "
    "(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (resource) DO UPDATE SET generation = ?2, token = "
    "?3, used = ?4, key = ?5, digest = ?6, claim = ?7";

struct Row {
  core::Fence fence;
  ClaimHash claim;  // of the holder that raised it; empty: it showed none
};

class Database {
 public:
  Database(const SqliteCalls& calls, sqlite3* db) : calls_(calls), db_(db) {}

  bool in_transaction() const { return calls_.get_autocommit(db_) == 0; }

  Error fault(std::string_view doing) const {
    return unavailable(cat("while ", doing, " in your database: ", printable(calls_.errmsg(db_)),
                           "; roll back: nothing was admitted"));
  }

  Status run(const char* sql, std::string_view doing) {
    sqlite3_stmt* statement = nullptr;
    const bool good = calls_.prepare(db_, sql, -1, &statement, nullptr) == SQLITE_OK &&
                      calls_.step(statement) == SQLITE_DONE;
    // The error must be told before another call changes it.
    const Status out = good ? Status() : Status(fault(doing));
    calls_.finalize(statement);
    return out;
  }

  Result<std::optional<Row>> fence(const std::string& resource) {
    sqlite3_stmt* statement = nullptr;
    if (calls_.prepare(db_, kRead, -1, &statement, nullptr) != SQLITE_OK) {
      const Error error = fault("reading the fence");
      if (!run(kWiden, "widening stint_fences")) return error;
    }
    if ((statement == nullptr &&
         calls_.prepare(db_, kRead, -1, &statement, nullptr) != SQLITE_OK) ||
        bind(statement, 1, resource) != SQLITE_OK) {
      const Error error = fault("reading the fence");
      calls_.finalize(statement);
      return error;
    }
    const int code = calls_.step(statement);
    Result<std::optional<Row>> out = std::optional<Row>();
    if (code == SQLITE_ROW) {
      out = read_row(statement, resource);
    } else if (code != SQLITE_DONE) {
      out = fault("reading the fence");
    }
    calls_.finalize(statement);
    return out;
  }

  Status raise(const core::Fence& fence, const ClaimHash& claim) {
    sqlite3_stmt* statement = nullptr;
    const bool good =
        calls_.prepare(db_, kWrite, -1, &statement, nullptr) == SQLITE_OK &&
        bind(statement, 1, fence.resource) == SQLITE_OK &&
        bind(statement, 2, fence.generation.hex()) == SQLITE_OK &&
        calls_.bind_int64(statement, 3, static_cast<sqlite3_int64>(fence.token.number())) ==
            SQLITE_OK &&
        calls_.bind_int64(statement, 4, fence.used ? 1 : 0) == SQLITE_OK &&
        bind(statement, 5, fence.key) == SQLITE_OK &&
        bind(statement, 6, fence.digest) == SQLITE_OK &&
        bind(statement, 7, claim.hex()) == SQLITE_OK && calls_.step(statement) == SQLITE_DONE;
    const Status out = good ? Status() : Status(fault("raising the fence"));
    calls_.finalize(statement);
    return out;
  }

 private:
  int bind(sqlite3_stmt* statement, int place, const std::string& text) const {
    // Bound before the statement is run and finalised: the text outlives both.
    return calls_.bind_text(statement, place, text.data(), static_cast<int>(text.size()), nullptr);
  }
  std::string text(sqlite3_stmt* statement, int column) const {
    const auto* bytes = reinterpret_cast<const char*>(calls_.column_text(statement, column));
    if (bytes == nullptr) return {};
    return {bytes, static_cast<std::size_t>(calls_.column_bytes(statement, column))};
  }
  Result<std::optional<Row>> read_row(sqlite3_stmt* statement, const std::string& resource) const {
    const auto generation = Generation::parse(text(statement, 0));
    const sqlite3_int64 token = calls_.column_int64(statement, 1);
    const sqlite3_int64 used = calls_.column_int64(statement, 2);
    const bool whole = calls_.column_type(statement, 1) == SQLITE_INTEGER &&
                       calls_.column_type(statement, 2) == SQLITE_INTEGER && token > 0 &&
                       static_cast<std::uint64_t>(token) <= Token::kMax && (used == 0 || used == 1);
    if (!generation || !whole) {
      return unavailable(cat("the fence of ", quoted(resource),
                             " in stint_fences is damaged; nothing is admitted until an operator "
                             "has looked at it"));
    }
    return std::optional(Row{.fence = {.generation = *generation,
                                       .resource = resource,
                                       .token = Token(static_cast<std::uint64_t>(token)),
                                       .used = used == 1,
                                       .key = text(statement, 3),
                                       .digest = text(statement, 4)},
                             .claim = ClaimHash(text(statement, 5))});
  }

  const SqliteCalls& calls_;
  sqlite3* const db_;
};

SqliteVerdict verdict_of(const core::FenceDecision& decision, Refused why, bool sealing) {
  if (is_refusal(decision.verdict)) return why;
  const bool done = decision.verdict == core::Verdict::Done;
  return SqliteLet{.already = done || (sealing && !decision.fence)};
}

using RowJudge = Result<core::FenceDecision> (*)(const std::optional<core::Fence>&, const Pass&,
                                                 const std::string&, api::Fences*, Refused*);

Result<core::FenceDecision> write_judge(const std::optional<core::Fence>& fence, const Pass& pass,
                                        const std::string& digest, api::Fences* fences,
                                        Refused* why) {
  // Who calls this wants to be guarded, also where nothing was sealed yet.
  if (!pass.token.issued()) {
    why->verdict = core::Verdict::NoToken;
    why->fence = fence;
    return core::FenceDecision{core::Verdict::NoToken, std::nullopt};
  }
  return judge_write(fence, pass, digest, fences, why);
}

Result<core::FenceDecision> seal_judge(const std::optional<core::Fence>& fence, const Pass& pass,
                                       const std::string& /*digest*/, api::Fences* fences,
                                       Refused* why) {
  return judge_seal(fence, {.pass = pass, .by_order = false, .adopt = {}}, fences, why);
}

// Inside a transaction: the lock, the fence, the law, the fence's new state.
Result<SqliteVerdict> decide(Database& db, const Pass& pass, const std::string& digest,
                             api::Fences* fences, RowJudge judge) {
  if (auto made = db.run(kTable, "making stint_fences"); !made) return made.error();
  if (auto locked = db.run(kLock, "taking the write lock"); !locked) return locked.error();
  auto row = db.fence(pass.resource.text());
  if (!row) return row.error();
  Refused why;
  why.target = "stint_fences";
  std::optional<core::Fence> fence;
  if (*row) {
    fence = (*row)->fence;
    const bool equal = fence->token == pass.token && fence->generation == pass.generation;
    auto ours = equal ? same_holder((*row)->claim, pass, why.target) : Status();
    if (!ours) return ours.error();
  }
  auto decision = judge(fence, pass, digest, fences, &why);
  if (!decision) return decision.error();
  if (decision->fence) {
    // Who shows none does not wipe out what its token was sealed with.
    const ClaimHash shown = pass.claim ? pass.claim->hash() : ClaimHash();
    const bool keeps = shown.empty() && fence && fence->token == decision->fence->token;
    if (auto raised = db.raise(*decision->fence, keeps ? (*row)->claim : shown); !raised) {
      return raised.error();
    }
  }
  return verdict_of(*decision, std::move(why), judge == seal_judge);
}

}  // namespace

Result<SqliteVerdict> admit_sqlite(const SqliteCalls& calls, sqlite3* db, const Pass& pass,
                                   const std::string& digest, api::Fences* fences) {
  Database database(calls, db);
  if (!database.in_transaction()) {
    return invalid(
        "admit() belongs into the transaction that writes: BEGIN IMMEDIATE, admit(), your "
        "statements, COMMIT");
  }
  return decide(database, pass, digest, fences, write_judge);
}

Result<SqliteVerdict> seal_sqlite(const SqliteCalls& calls, sqlite3* db, const Pass& pass,
                                  api::Fences& fences) {
  Database database(calls, db);
  if (database.in_transaction()) return decide(database, pass, "", &fences, seal_judge);
  if (auto begun = database.run("BEGIN IMMEDIATE", "beginning the seal"); !begun) {
    return begun.error();
  }
  auto answer = decide(database, pass, "", &fences, seal_judge);
  if (!answer || std::holds_alternative<Refused>(*answer)) {
    // What SQLite has rolled back by itself cannot be rolled back again.
    if (database.in_transaction()) {
      if (auto undone = database.run("ROLLBACK", "undoing the seal"); !undone) {
        return undone.error();
      }
    }
    return answer;
  }
  if (auto committed = database.run("COMMIT", "committing the seal"); !committed) {
    const bool open = database.in_transaction();
    if (open && database.run("ROLLBACK", "undoing the seal")) return committed.error();
    return Error{Code::UnknownOutcome, committed.error().message};
  }
  return answer;
}

}  // namespace stint::guard
