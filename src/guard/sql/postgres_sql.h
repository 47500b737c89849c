// The SQL that a guarded database carries: one text, one version. `$R` is the quoted schema of the
// store whose leases may live in the same database.
//
// What stands there, all in the schema `stint`, beside the store's own tables if it lives there:
//
//   guard      the version of this text; fences; sealing (a seal that has been announced);
//   overrides  writes that an owner let through, and refusals that `warn` let through
//   verdict()  the law of core/fence.h, cell by cell (tests/guard_sql/law_test.cc)
//   admit() seal() announce_seal()     check and lock in the caller's transaction
//   require_token() protect() unprotect() follow() problems()     protected tables
//
// Why so, and which lock is taken when: docs/internals/guard-sql.md.
#pragma once

namespace stint::guard {

constexpr int kPostgresGuardVersion = 6;

extern const char* const kGuardTables;
extern const char* const kGuardLaw;
extern const char* const kGuardFunctions;
extern const char* const kGuardSeals;
extern const char* const kGuardTriggers;
extern const char* const kGuardRights;
extern const char* const kGuardRemoval;

}  // namespace stint::guard
