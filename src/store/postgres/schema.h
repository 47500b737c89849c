// The store's schema in the database: found, made or brought up to date when the store is opened.
//
// A schema has a version. Script n brings one from version n-1 to n, in one transaction; the first
// makes it. Two that make it at once: the second waits for the first's names, fails, and looks
// again.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/postgres/client.h"

namespace stint::store::postgres {

constexpr int kSchemaVersion = 6;

extern const char* const kTables;
extern const char* const kFunctions;
extern const char* const kViews;
extern const char* const kGateBuilt;
extern const char* const kGateOpened;
extern const char* const kJudgedLast;

struct Entered {
  bool created = false;
  bool through_pooler = false;  // another process answers than the one that was announced
  bool fsync = true;
  bool replicas_lag = false;  // there are some, and no commit waits for them
  bool gated = false;         // no call of a function that takes no gate is under way
  std::uint64_t revision = 0;
};

Result<Entered> enter(Connection& conn, const Settings& settings, bool may_create, MonoTime until);

}  // namespace stint::store::postgres
