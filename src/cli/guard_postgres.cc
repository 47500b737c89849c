#include "cli/guard_postgres.h"

#include "app/postgres_guard.h"
#include "base/text.h"
#include "cli/exit_codes.h"

namespace stint::cli {

bool is_postgres_place(std::string_view word) {
  return word.starts_with("postgres://") || word.starts_with("postgresql://") ||
         word.starts_with('@');
}

int postgres_install(Session& session) {
  auto guard = app::open_postgres(session.words().operands()[1], session.clock());
  if (!guard) return session.fail(guard.error());
  const auto fresh = (*guard)->install();
  if (!fresh) return session.fail(fresh.error());
  return session.done({{"installed", true}, {"already", !*fresh}},
                      *fresh ? "installed: stint.admit and stint.seal are in this database"
                             : "the guard was there already, and is up to date");
}

int postgres_uninstall(Session& session) {
  auto guard = app::open_postgres(session.words().operands()[1], session.clock());
  if (!guard) return session.fail(guard.error());
  const auto gone = (*guard)->uninstall(session.words().has("--unprotect"));
  if (!gone) return session.fail(gone.error());
  return session.done({{"installed", false}, {"was_there", *gone}},
                      *gone ? "removed: nothing in this database refuses a late write any more"
                            : "there was no guard in this database");
}

Result<std::vector<guard::CheckLine>> postgres_check(Session& session) {
  auto guard = app::open_postgres(session.words().operands()[1], session.clock());
  if (!guard) return guard.error();
  const auto state = (*guard)->look();
  if (!state) return state.error();
  return app::check_lines(*state, "");
}

int postgres_table(Session& session) {
  const auto& operands = session.words().operands();
  if (operands.size() != 3) return session.fail(invalid("which TABLE?"));
  auto guard = app::open_postgres(operands[1], session.clock());
  if (operands[0] == "unprotect") {
    if (!guard) return session.fail(guard.error());
    const auto gone = (*guard)->unprotect(operands[2]);
    if (!gone) return session.fail(gone.error());
    return session.done({{"table", operands[2]},
                         {"protected", false},
                         {"changed", static_cast<std::int64_t>(*gone)}},
                        *gone == 0 ? "it was not protected"
                                   : cat("unprotected: ", printable(operands[2]),
                                         " takes writes from everybody again"));
  }
  const auto name = session.words().value("--resource");
  if (!name) return session.fail(invalid("protect needs --resource R: whose token counts"));
  auto resource = ResourceName::parse(*name);
  if (!resource) return session.fail(resource.error());
  if (!guard) return session.fail(guard.error());
  const auto made = (*guard)->protect(operands[2], *resource);
  if (!made) return session.fail(made.error());
  return session.done({{"table", operands[2]},
                       {"resource", resource->text()},
                       {"protected", true},
                       {"changed", static_cast<std::int64_t>(*made)}},
                      *made == 0
                          ? "it was protected already"
                          : cat("protected: ", printable(operands[2]), " (", *made,
                                " table(s) with its partitions) refuses writes without a current "
                                "token of ",
                                quoted(resource->text())));
}

}  // namespace stint::cli
