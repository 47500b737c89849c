// The guard of PostgreSQL databases, from the module beside the program.
#pragma once

#include <string>
#include <string_view>

#include "guard/sql/postgres_guard.h"
#include "guard/targets.h"

namespace stint::app {

// postgres://... as a store URL is written, or @FILE: a file that holds it, for one with a
// password. Without #RESOURCE.
guard::OpenedPostgresGuard open_postgres(std::string_view url, const Clock& clock);

// The line of app's table of guards: postgres://HOST/DATABASE#RESOURCE.
guard::Guard postgres_guard();

// What `guard check` says of a database.
std::vector<guard::CheckLine> check_lines(const guard::PostgresState& state,
                                          const std::string& resource);

}  // namespace stint::app
