// `stint guard install|uninstall|protect|unprotect postgres://...`: the guard in a database.
#pragma once

#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/session.h"
#include "guard/targets.h"

namespace stint::cli {

constexpr Option kProtectResourceOption = {"--resource", "R",
                                           "protect: the resource whose token a write must show"};
constexpr Option kUnprotectOption = {
    "--unprotect", "", "uninstall from a database: also take the protection of tables away"};

// A URL, or @FILE: a file that holds one, for a URL with a password.
bool is_postgres_place(std::string_view word);
// The operands are the verb and the place.
int postgres_install(Session& session);
int postgres_uninstall(Session& session);
// A database as a whole; with #RESOURCE it is a target like others.
Result<std::vector<guard::CheckLine>> postgres_check(Session& session);
// protect, unprotect: a third operand names the table.
int postgres_table(Session& session);

}  // namespace stint::cli
