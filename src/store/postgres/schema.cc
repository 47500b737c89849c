#include "store/postgres/schema.h"

#include <array>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"

namespace stint::store::postgres {
namespace {

constexpr int kMostTries = 20;
// The functions take the gate; one that was called before may still be under way.
constexpr int kGateVersion = 3;
constexpr int kOpenVersion = 4;  // no such one is
constexpr Millis kGatePatience{100};
constexpr Millis kGatePace{2};

struct Found {
  int version = 0;
  Entered entered;
};

// One question for everything, so that a short command has one round trip less.
Outcome<Rows> hello(Connection& conn, const Settings& settings, MonoTime until) {
  const Statement ask{
      .name = "",
      .sql = settings.sql(
          "SELECT m.product, m.version, pg_is_in_recovery(), current_setting('fsync') = 'on',"
          " current_setting('transaction_isolation'), pg_backend_pid(),"
          " (SELECT s.last_value FROM $S.revision s),"
          " current_setting('synchronous_standby_names') = '' AND"
          " EXISTS (SELECT FROM pg_stat_get_wal_senders()) FROM $S.meta m")};
  return conn.run(ask, Params(), until);
}

Error foreign(const Settings& settings, std::string_view what) {
  return unavailable(cat("the schema ", quoted(settings.schema), " holds ", what,
                         " that is not Stint's; name another schema with ?schema="));
}

Result<Found> understood(const Rows& rows, const Connection& conn, const Settings& settings) {
  if (auto ok = rows.expect_columns(8); !ok) return ok.error();
  if (rows.count() != 1) return foreign(settings, "a table 'meta'");
  const auto product = rows.text(0, 0);
  const auto version = rows.integer(0, 1);
  if (!product || *product != "stint" || !version) return foreign(settings, "a table 'meta'");
  const auto standby = rows.boolean(0, 2);
  const auto fsync = rows.boolean(0, 3);
  const auto isolation = rows.text(0, 4);
  const auto pid = rows.integer(0, 5);
  const auto revision = rows.bigint(0, 6);
  const auto replicas_lag = rows.boolean(0, 7);
  if (!standby || !fsync || !isolation || !pid || !revision || !replicas_lag) {
    return unavailable("the server's answer is damaged");
  }
  if (*standby) return unavailable("the server is a read-only replica: name the primary");
  if (*isolation != "read committed") {
    return unavailable(cat("the isolation level is ", quoted(*isolation),
                           " by default and the pooler keeps it: ALTER ROLE ... SET "
                           "default_transaction_isolation = 'read committed'"));
  }
  if (*version > kSchemaVersion) {
    return unavailable(cat("the schema ", quoted(settings.schema), " is of version ", *version,
                           ", made by a newer stint; this one knows ", kSchemaVersion));
  }
  Found found;
  found.version = *version;
  found.entered = {.created = false,
                   .through_pooler = *pid != conn.told_pid(),
                   .fsync = *fsync,
                   .replicas_lag = *replicas_lag,
                   .revision = static_cast<std::uint64_t>(*revision)};
  return found;
}

bool missing(std::string_view state) { return state == "42P01" || state == "3F000"; }

// Another made the same thing in the same moment: duplicate names of all kinds, and what the
// catalogue says when two change one row of it.
bool raced(const Fault& fault) {
  for (const std::string_view state :
       {"23505", "42P06", "42P07", "42710", "42723", "40P01", "40001", "XX000", "55P03"}) {
    if (fault.state == state) return true;
  }
  return false;
}

// A relation of ours that is there although `meta` is not.
Result<std::string> stranger(Connection& conn, const Settings& settings, MonoTime until) {
  const Statement ask{
      .name = "",
      .sql =
          "SELECT (SELECT c.relname::text FROM pg_catalog.pg_class c"
          " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1"
          " AND c.relname IN ('record', 'version', 'nth', 'mark', 'waiter', 'leases', 'events')"
          " AND NOT EXISTS (SELECT FROM pg_catalog.pg_class m WHERE m.relname = 'meta'"
          " AND m.relnamespace = n.oid) LIMIT 1),"
          " EXISTS (SELECT FROM pg_catalog.pg_namespace n WHERE n.nspname = $1)"};
  Params params;
  params.text(settings.schema);
  auto rows = conn.run(ask, params, until);
  if (!rows) return rows.error().error;
  if (auto ok = rows->expect_columns(2); !ok) return ok.error();
  if (rows->count() != 1) return unavailable("the server's answer is damaged");
  if (!rows->is_null(0, 0)) {
    auto name = rows->text(0, 0);
    if (!name) return name.error();
    return foreign(settings, cat("a relation ", quoted(*name)));
  }
  auto exists = rows->boolean(0, 1);
  if (!exists) return exists.error();
  return *exists ? std::string() : settings.sql("CREATE SCHEMA $S;");
}

Error explained(const Fault& fault, const Settings& settings, std::string_view doing) {
  Error error = fault.error;
  if (fault.state == "42501") {
    error.message += cat("; whoever may, runs stint once or: GRANT CREATE ON DATABASE ... TO ...");
  }
  return std::move(error).during(cat(doing, " the schema ", quoted(settings.schema)));
}

// Empty: another was at it; look again.
Result<bool> make(Connection& conn, const Settings& settings, MonoTime until) {
  auto create_schema = stranger(conn, settings, until);
  if (!create_schema) return create_schema.error();
  const std::string script =
      settings.sql(cat("BEGIN; SET LOCAL synchronous_commit = on;", *create_schema, kTables,
                       kFunctions, kViews, kJudgedLast, "COMMIT;"));
  auto made = conn.run_script(script, until);
  if (made) return true;
  const Fault fault = made.error();
  if (!conn.broken()) {
    if (auto undone = conn.run_script("ROLLBACK", until); !undone) return undone.error().error;
  }
  if (raced(fault) && !conn.broken()) return false;
  return explained(fault, settings, "making");
}

// Fails on nothing that another has done meanwhile: the scripts replace what is there.
Status run_update(Connection& conn, const Settings& settings, const std::string& script,
                  MonoTime until) {
  auto done =
      conn.run_script(cat(settings.sql("BEGIN; LOCK TABLE $S.meta IN SHARE ROW EXCLUSIVE MODE;"),
                          settings.sql(kFunctions), settings.sql(script), "COMMIT;"),
                      until);
  if (done) return {};
  const Fault fault = done.error();
  if (!conn.broken()) {
    if (auto undone = conn.run_script("ROLLBACK", until); !undone) return undone.error().error;
  }
  if (raced(fault) && !conn.broken()) return {};
  return explained(fault, settings, "updating");
}

Status migrate(Connection& conn, const Settings& settings, int from, MonoTime until) {
  // Script n is at n-1.
  const std::array<const char*, kGateVersion> scripts = {"", kViews, kGateBuilt};
  std::string script;
  for (int version = from; version < kGateVersion; ++version) {
    script += scripts[static_cast<std::size_t>(version)];
  }
  return run_update(conn, settings, script, until);
}

Result<std::string> ask_text(Connection& conn, const std::string& sql, const Params& params,
                             MonoTime until) {
  auto rows = conn.run({.name = "", .sql = sql}, params, until);
  if (!rows) return rows.error().error;
  if (rows->count() != 1) return unavailable("the server's answer is damaged");
  return rows->text(0, 0);
}

// Who may not replace functions works with those of version 4 and 5: they differ only for who waits
// for a row that a person holds, or is inserting.
Result<bool> renew_functions(Connection& conn, const Settings& settings, MonoTime until) {
  auto owns = ask_text(conn,
                       settings.sql("SELECT pg_catalog.pg_has_role(p.proowner, 'USAGE')::text"
                                    " FROM pg_catalog.pg_proc p WHERE p.oid = '$S.wake'::regproc"),
                       Params(), until);
  if (!owns) return owns.error();
  if (*owns != "true") return false;
  auto done = run_update(conn, settings, kJudgedLast, until);
  if (done) return true;
  if (done.error().code == Code::Denied && !conn.broken()) return false;
  return done.error();
}

// True: every transaction has ended that began before the functions were replaced, and with it
// every call of the old ones. Who is not patient enough works without the gate.
Result<bool> open_gate(Connection& conn, const Settings& settings, MonoTime until) {
  // Waits for the table lock of whoever replaced them: from then on nobody finds the old ones.
  if (auto passed = conn.run_script(settings.sql("UPDATE $S.meta SET version = version"), until);
      !passed) {
    return passed.error().error;
  }
  auto running = ask_text(
      conn,
      "SELECT coalesce(string_agg(l.virtualtransaction, ','), '')::text FROM pg_catalog.pg_locks l"
      " JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'virtualxid'"
      " AND l.pid <> pg_backend_pid() AND a.datname = current_database()",
      Params(), until);
  if (!running) return running.error();
  const os::SystemClock clock;
  const MonoTime patience = std::min(until, clock.mono() + kGatePatience);
  while (true) {
    auto left = ask_text(conn,
                         "SELECT count(*)::text FROM pg_catalog.pg_locks l"
                         " WHERE l.virtualtransaction = ANY (string_to_array($1, ','))",
                         Params().text(*running), until);
    if (!left) return left.error();
    if (*left == "0") break;
    if (clock.mono() >= patience) return false;
    os::pause_for(kGatePace);
  }
  auto opened = conn.run_script(settings.sql(kGateOpened), until);
  if (!opened) return opened.error().error;
  return true;
}

// One step. False: it stays as it is for now, and can be worked with.
Result<bool> update(Connection& conn, const Settings& settings, int version, MonoTime until) {
  if (version == kGateVersion) return open_gate(conn, settings, until);
  if (version >= kOpenVersion) return renew_functions(conn, settings, until);
  if (auto done = migrate(conn, settings, version, until); !done) return done.error();
  return true;
}

}  // namespace

Result<Entered> enter(Connection& conn, const Settings& settings, bool may_create, MonoTime until) {
  bool created = false;
  for (int i = 0; i < kMostTries; ++i) {
    auto rows = hello(conn, settings, until);
    if (rows) {
      auto found = understood(*rows, conn, settings);
      if (!found) return found.error();
      found->entered.created = created;
      found->entered.gated = found->version >= kOpenVersion;
      if (found->version == kSchemaVersion) return found->entered;
      auto goes_on = update(conn, settings, found->version, until);
      if (!goes_on) return goes_on.error();
      if (!*goes_on) return found->entered;
      continue;
    }
    const Fault& fault = rows.error();
    if (fault.state == "42703" || fault.state == "42809")
      return foreign(settings, "a table 'meta'");
    if (!missing(fault.state)) return fault.error;
    if (!may_create) {
      return unavailable("there is no Stint store at this place, and this client may not make one");
    }
    auto made = make(conn, settings, until);
    if (!made) return made.error();
    created |= *made;
  }
  return unavailable(cat("the schema ", quoted(settings.schema),
                         " cannot be made: others keep "
                         "making and dropping it"));
}

}  // namespace stint::store::postgres
