#include "guard/sql/postgres_guard.h"

extern "C" __attribute__((visibility("default"))) void stint_open_postgres_guard(
    const stint::guard::PostgresTarget& target, const stint::Clock& clock,
    stint::guard::OpenedPostgresGuard* answer) {
  *answer = stint::guard::open_postgres_guard(target, clock);
}
