// The guard of a PostgreSQL database: what an operator puts there, and how a holder seals it.
//
// The check itself is SQL in the writer's own transaction (guard/sql/postgres_sql.h): nothing of
// this stands between a writer and its database.
//
// This is the face of a module: libpq is not loaded at every start of the program. Errors:
// Unavailable (not reached, no guard there), Denied, Invalid, UnknownOutcome (sent, no answer).
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "guard/guard.h"
#include "net/address.h"

namespace stint::guard {

struct ProtectedTable {
  std::string table;  // as SQL would name it
  std::string resource;
};

// What `guard check` tells.
struct PostgresState {
  int version = 0;             // of the guard; 0: there is none
  bool store_is_here = false;  // the leases' own store is in this database
  bool follows = false;        // what becomes a part of a protected table is protected by itself
  std::vector<ProtectedTable> tables;
  std::vector<core::Fence> fences;
  std::vector<std::string> problems;
};

class PostgresGuard {
 public:
  virtual ~PostgresGuard() = default;

  // Again is no change; an older version is brought up to date. false: it stood there already.
  virtual Result<bool> install() = 0;
  // Removes all that install() put there. While tables are protected: Invalid, unless told to take
  // their protection away too. false: there was none.
  virtual Result<bool> uninstall(bool unprotect) = 0;

  // `table` as SQL names it: posts, blog.posts, "We;ird". The number of tables (partitions) that
  // were not protected before.
  virtual Result<int> protect(const std::string& table, const ResourceName& resource) = 0;
  virtual Result<int> unprotect(const std::string& table) = 0;

  virtual Result<PostgresState> look() = 0;

  // Waits for transactions of older tokens, which the server ends when their time is over.
  virtual Result<SealAnswer> seal(const SealRequest& request, api::Fences* fences) = 0;
};

// `address.options["schema"]`: where the store's own tables are, if they are in this database.
struct PostgresTarget {
  net::Address address;
  // Of one call; a seal waits four fifths of it for older transactions: more than the 30 s that a
  // frozen one has by default.
  Millis timeout{40'000};
};
using OpenedPostgresGuard = Result<std::unique_ptr<PostgresGuard>>;
OpenedPostgresGuard open_postgres_guard(const PostgresTarget& target, const Clock& clock);

// The entry of the module; see store/module.h.
using PostgresGuardEntry = void(const PostgresTarget& target, const Clock& clock,
                                OpenedPostgresGuard* answer);
constexpr const char* kPostgresGuardEntry = "stint_open_postgres_guard";

}  // namespace stint::guard
