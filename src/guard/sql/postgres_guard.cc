#include "guard/sql/postgres_guard.h"

#include "base/text.h"
#include "guard/sql/postgres_sql.h"
#include "guard/sql/sqlstate.h"
#include "net/postgres/connection.h"

namespace stint::guard {
namespace {

using net::postgres::Connection;
using net::postgres::Fault;
using net::postgres::Outcome;
using net::postgres::Params;
using net::postgres::Rows;
using net::postgres::Settings;

constexpr int kMostTries = 10;
constexpr Millis kConnectTime{10'000};

// Another installs in the same moment: duplicate names, and what the catalogue says when two change
// one row of it.
bool raced(std::string_view state) {
  for (const std::string_view one :
       {"23505", "42P06", "42P07", "42710", "42723", "40P01", "40001", "XX000"}) {
    if (state == one) return true;
  }
  return false;
}

bool absent(std::string_view state) {
  return state == "42P01" || state == "3F000" || state == "42883";
}

const char* const kBegin = R"sql(BEGIN;
SET LOCAL synchronous_commit = on;
DO $f$
BEGIN
  IF to_regnamespace('stint') IS NULL THEN
    CREATE SCHEMA stint;
    PERFORM set_config('stint.made_schema', '1', true);
  ELSIF has_schema_privilege('public', 'stint', 'USAGE') THEN
    PERFORM set_config('stint.had_usage', '1', true);
  END IF;
END $f$;
)sql";

constexpr std::string_view kOtherSchema = "SG001";

// The row first: two who install at the same time meet there, and the later one sees what schema
// the functions of the earlier one look at.
std::string install_script(const std::string& schema) {
  return cat(kBegin, kGuardTables,
             "INSERT INTO stint.guard (product, version, made_schema, store_schema, had_usage)"
             " VALUES ('stint guard', ",
             kPostgresGuardVersion,
             ", coalesce(current_setting('stint.made_schema', true), '') = '1', '", schema,
             "', coalesce(current_setting('stint.had_usage', true), '') = '1') ON CONFLICT "
             "(product) DO UPDATE SET version = excluded.version,"
             " store_schema = coalesce(guard.store_schema, excluded.store_schema);"
             "DO $f$ BEGIN IF EXISTS (SELECT FROM stint.guard g WHERE g.store_schema <> '",
             schema, "') THEN RAISE EXCEPTION 'another schema' USING ERRCODE = '", kOtherSchema,
             "'; END IF; END $f$;", kGuardLaw, kGuardFunctions, kGuardSeals, kGuardTriggers,
             kGuardRights, "COMMIT;");
}

class Guard final : public PostgresGuard {
 public:
  Guard(Settings settings, const Clock& clock) : settings_(std::move(settings)), clock_(clock) {}

  Status connect() {
    const MonoTime until = clock_.mono() + kConnectTime;
    Connection::Plan plan{
        .hosts = settings_.hosts, .pooled = settings_.pooler.value_or(false), .relaxed = false};
    auto opened = Connection::open(settings_, plan, clock_, until);
    // A pooler that knows nothing of a session's own settings says so at the door.
    if (!opened && !settings_.pooler &&
        opened.error().message.find("startup parameter") != std::string::npos) {
      plan.pooled = true;
      opened = Connection::open(settings_, plan, clock_, until);
    }
    if (!opened) return opened.error();
    conn_ = std::move(*opened);
    return {};
  }

  Result<bool> install() override {
    for (int i = 0; i < kMostTries; ++i) {
      auto had = version();
      if (!had) return had.error();
      if (*had > kPostgresGuardVersion) {
        return unavailable(cat("the guard in this database is of version ", *had,
                               ", made by a newer stint; this one knows ", kPostgresGuardVersion));
      }
      // Once installed it stays what it was; a URL that says otherwise is refused.
      auto schema = *had == 0 || settings_.schema_given ? Result<std::string>(settings_.schema)
                                                        : installed_schema();
      if (!schema) return schema.error();
      auto done = script(with_schema(install_script(*schema), *schema));
      if (done) return *had < kPostgresGuardVersion;
      if (done.error().state == kOtherSchema) {
        return invalid(cat("the guard in this database looks at leases in another schema than ",
                           quoted(*schema),
                           "; nothing was changed. To move it: stint guard uninstall, then install "
                           "with ?schema="));
      }
      if (!raced(done.error().state) || conn_->broken()) return told(done.error());
    }
    return unavailable("the guard cannot be installed: others keep changing it");
  }

  Result<bool> uninstall(bool unprotect) override {
    auto had = version();
    if (!had) return had.error();
    if (*had == 0) return false;
    auto tables = protected_tables();
    if (!tables) return tables.error();
    if (!tables->empty() && !unprotect) {
      std::string names;
      for (const ProtectedTable& one : *tables) names += cat(names.empty() ? "" : ", ", one.table);
      return invalid(cat("tables are still protected: ", names,
                         "; nothing was changed. --unprotect takes their protection away too"));
    }
    // In the same transaction: nobody finds a table whose trigger calls what is gone.
    auto done =
        script(cat("BEGIN; SELECT stint.unprotect(p.relation) FROM stint.protections() p"
                   " WHERE p.way = 'statement' AND NOT EXISTS (SELECT FROM pg_catalog.pg_inherits i"
                   " JOIN stint.protections() o ON o.relation = i.inhparent"
                   " WHERE i.inhrelid = p.relation);",
                   kGuardRemoval, "COMMIT;"));
    if (!done) return told(done.error());
    return true;
  }

  Result<int> protect(const std::string& table, const ResourceName& resource) override {
    Params params;
    params.text(table).text(resource.text());
    return counted("stint.protect($1::regclass, $2)", params, table);
  }

  Result<int> unprotect(const std::string& table) override {
    Params params;
    params.text(table);
    return counted("stint.unprotect($1::regclass)", params, table);
  }

  Result<PostgresState> look() override {
    PostgresState out;
    auto found = version();
    if (!found) return found.error();
    out.version = *found;
    if (out.version == 0) return out;
    auto tables = protected_tables();
    if (!tables) return tables.error();
    out.tables = std::move(*tables);
    if (out.version < kPostgresGuardVersion) {
      out.problems.push_back(cat("it is of version ", out.version, ", and this stint knows ",
                                 kPostgresGuardVersion,
                                 ": bring it up to date with stint guard install"));
      return out;
    }
    auto schema = installed_schema();
    if (!schema) return schema.error();
    if (settings_.schema_given && *schema != settings_.schema) {
      out.problems.push_back(cat("the guard looks at leases in the schema ", quoted(*schema),
                                 ", not in ", quoted(settings_.schema), " as this URL says"));
    }
    auto here = ask("SELECT stint.store_is_here(), stint.follows()", Params());
    if (!here) return told(here.error());
    auto is_here = here->boolean(0, 0);
    auto follows = here->boolean(0, 1);
    if (!is_here || !follows) return unavailable("the server's answer is damaged");
    out.store_is_here = *is_here;
    out.follows = *follows;
    auto fences = fences_where("true", Params());
    if (!fences) return fences.error();
    out.fences = std::move(*fences);
    auto problems = ask("SELECT * FROM stint.problems()", Params());
    if (!problems) return told(problems.error());
    for (int i = 0; i < problems->count(); ++i) {
      auto line = problems->text(i, 0);
      if (!line) return line.error();
      out.problems.push_back(printable(*line));
    }
    return out;
  }

  Result<SealAnswer> seal(const SealRequest& request, api::Fences* fences) override {
    std::optional<api::TokenWord> word;
    auto answer = sealed(request, word);
    if (!answer && verdict_of_sqlstate(answer.error().state) == core::Verdict::AskStore) {
      if (fences == nullptr) {
        return unavailable(
            "the store of this token cannot be asked, so nothing was sealed; nothing was changed");
      }
      auto asked = fences->word(request.pass.resource);
      if (!asked) return asked.error();
      word = *asked;
      answer = sealed(request, word);
    }
    if (answer) return SealAnswer(*answer);
    const Fault& fault = answer.error();
    if (const auto verdict = verdict_of_sqlstate(fault.state)) {
      return refused(request, *verdict, fault, word);
    }
    if (fault.state == "55P03") {
      return unavailable(
          "transactions of older tokens have not ended in time, so the fence was not raised; they "
          "begin no more. Seal again; pg_stat_activity shows who they are");
    }
    if (!fault.certain) {
      return Error{Code::UnknownOutcome, cat("the seal was sent and not answered: ",
                                             fault.error.message, "; sealing again is safe")};
    }
    return told(fault);
  }

 private:
  MonoTime until() const { return clock_.mono() + settings_.timeout; }

  Outcome<Rows> ask(const std::string& sql, const Params& params) {
    return conn_->run({.name = "", .sql = sql}, params, until());
  }

  // `call` may wait for others, and then it is the server that gives up. Said with each, since a
  // pooler may have taken the session's own settings and forgotten them.
  Outcome<Rows> ask_patiently(const std::string& call, const Params& params) {
    const auto wait = std::max<std::int64_t>(1, settings_.timeout.count() * 4 / 5);
    return ask(cat("SELECT ", call, " FROM (SELECT set_config('lock_timeout', '", wait,
                   "', true), set_config('synchronous_commit', 'on', true) OFFSET 0) stint_said"),
               params);
  }

  Outcome<std::monostate> script(const std::string& sql) {
    auto done = conn_->run_script(sql, until());
    // The script's own BEGIN is still open after an error.
    if (!done && !conn_->broken()) {
      if (auto undone = conn_->run_script("ROLLBACK", until()); !undone) return undone;
    }
    return done;
  }

  // Where the leases are, if they are in this database, as it was installed.
  Result<std::string> installed_schema() {
    auto rows = ask("SELECT g.store_schema FROM stint.guard g", Params());
    if (!rows && rows.error().state == "42703") {
      return invalid(
          "the guard in this database is of an older version that does not say where the leases "
          "are; name it: stint guard install postgres://...?schema=NAME (stint, if there was "
          "none)");
    }
    if (!rows) return told(rows.error());
    if (rows->count() == 0) return settings_.schema;
    auto name = rows->text(0, 0);
    if (!name) return name.error();
    if (!net::postgres::plain_name(*name)) {
      return unavailable("the table stint.guard is damaged: it names no schema");
    }
    return *name;
  }

  // A schema's name cannot hold what is replaced. Whoever may call admit() sees the schema stint;
  // another one is asked about with the guard's rights, which costs more.
  static std::string with_schema(std::string text, const std::string& schema) {
    const auto put = [&text](std::string_view mark, const std::string& value) {
      for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at)) {
        text.replace(at, mark.size(), value);
        at += value.size();
      }
    };
    put("$H", schema == "stint" ? "pg_catalog.to_regclass('$R.record') IS NULL"
                                : "NOT stint.store_is_here()");
    put("$R", cat('"', schema, '"'));
    return text;
  }

  static Error told(const Fault& fault) {
    if (absent(fault.state)) {
      return unavailable(cat("there is no guard in this database (", fault.error.message,
                             "); its operator runs: stint guard install"));
    }
    Error error = fault.error;
    if (fault.state == "42501") {
      error.message += "; the role of this URL lacks that right";
    }
    return error;
  }

  // 0: there is none.
  Result<int> version() {
    auto rows =
        ask("SELECT g.version FROM stint.guard g WHERE g.product = 'stint guard'", Params());
    if (!rows && absent(rows.error().state)) return 0;
    if (!rows && rows.error().state == "42703") {
      return unavailable("the schema stint holds a table 'guard' that is not Stint's");
    }
    if (!rows) return rows.error().error;
    if (rows->count() == 0) return 0;
    auto number = rows->integer(0, 0);
    if (!number) return number.error();
    return *number;
  }

  Result<int> counted(const std::string& call, const Params& params, const std::string& table) {
    auto there = version();
    if (!there) return there.error();
    if (*there == 0) {
      return unavailable(
          "there is no guard in this database; its operator runs: stint guard install");
    }
    auto rows = ask_patiently(call, params);
    if (rows) {
      auto number = rows->integer(0, 0);
      if (!number) return number.error();
      return *number;
    }
    const Fault& fault = rows.error();
    // 42P01 no such table, 42602 no name, 42809 not such a table, 55000 protected otherwise, 22023.
    for (const std::string_view state :
         {"42P01", "3F000", "42602", "42809", "55000", "22023", "0A000", "42601"}) {
      if (fault.state == state) {
        return invalid(cat("the table ", quoted(table), ": ", fault.error.message));
      }
    }
    return told(fault);
  }

  Result<std::vector<ProtectedTable>> protected_tables() {
    auto rows =
        ask("SELECT p.relation::text, p.resource FROM stint.protections() p"
            " WHERE p.way = 'statement' ORDER BY 1",
            Params());
    if (!rows) return told(rows.error());
    std::vector<ProtectedTable> out;
    for (int i = 0; i < rows->count(); ++i) {
      auto table = rows->text(i, 0);
      auto resource = rows->text(i, 1);
      if (!table) return table.error();
      if (!resource) return resource.error();
      out.push_back({.table = printable(*table), .resource = printable(*resource)});
    }
    return out;
  }

  Result<std::vector<core::Fence>> fences_where(const std::string& condition,
                                                const Params& params) {
    auto rows = ask(cat("SELECT f.generation, f.resource, f.token, f.used, f.key, f.digest,"
                        " coalesce((to_jsonb(f) ->> 'nobodys')::boolean, false)"
                        " FROM stint.fences f WHERE ",
                        condition, " ORDER BY f.resource"),
                    params);
    if (!rows) return told(rows.error());
    std::vector<core::Fence> out;
    for (int i = 0; i < rows->count(); ++i) {
      auto life = rows->text(i, 0);
      auto resource = rows->text(i, 1);
      auto token = rows->bigint(i, 2);
      auto used = rows->boolean(i, 3);
      auto key = rows->text(i, 4);
      auto digest = rows->text(i, 5);
      auto nobodys = rows->boolean(i, 6);
      if (!life || !resource || !token || !used || !key || !digest || !nobodys) {
        return unavailable("the server's answer is damaged: a fence");
      }
      auto generation = Generation::parse(*life);
      if (!generation) return unavailable(cat("a damaged fence: ", generation.error().message));
      out.push_back({.generation = *generation,
                     .resource = *resource,
                     .token = Token(static_cast<std::uint64_t>(*token)),
                     .used = *used,
                     .key = *key,
                     .digest = *digest,
                     .nobodys = *nobodys});
    }
    return out;
  }

  // Announced, then made: see stint.announce_seal().
  Outcome<Sealed> sealed(const SealRequest& request, const std::optional<api::TokenWord>& word) {
    const Params params = seal_params(request, word);
    for (const std::string_view step : {"announce_seal", "seal"}) {
      auto rows = ask_patiently(
          cat("stint.", step, "($1, $2, $3, $4, $5 = 1, string_to_array($6, ','), $7 = 1, $8, $9)"),
          params);
      if (!rows) return tl::unexpected(rows.error());
      auto answer = rows->text(0, 0);
      if (!answer) return tl::unexpected(Fault{answer.error(), "", false});
      if (*answer == "already") return Sealed{.already = true};
    }
    return Sealed{.already = false};
  }

  static Params seal_params(const SealRequest& request, const std::optional<api::TokenWord>& word) {
    Params params;
    params.text(request.pass.resource.text())
        .bigint(static_cast<std::int64_t>(request.pass.token.number()))
        .text(request.pass.generation.hex());
    if (word) {
      std::string ancestors;
      for (const Generation& one : word->issued.ancestors) {
        ancestors += cat(ancestors.empty() ? "" : ",", one.hex());
      }
      params.bigint(static_cast<std::int64_t>(word->issued.newest.number()));
      if (word->issued.newest_nobodys) {
        params.null(Params::Null::Integer);
      } else {
        params.integer(word->issued.newest_granted ? 1 : 0);
      }
      params.text(ancestors);
    } else {
      params.null(Params::Null::Bigint).null(Params::Null::Integer).text("");
    }
    params.integer(request.by_order ? 1 : 0)
        .text(request.adopt ? cat(request.adopt->by, ": ", request.adopt->why) : "");
    if (word) {
      params.text(word->issued.generation.hex());
    } else {
      params.null(Params::Null::Text);
    }
    return params;
  }

  Result<SealAnswer> refused(const SealRequest& request, core::Verdict verdict, const Fault& fault,
                             const std::optional<api::TokenWord>& word) {
    Refused out;
    out.target = settings_.printable;
    out.verdict = verdict;
    out.offered = request.pass.token;
    if (word) out.newest_owner = word->owner;
    out.detail = fault.detail;
    auto fence = fences_where("f.resource = $1", Params().text(request.pass.resource.text()));
    if (!fence) return fence.error();
    if (!fence->empty()) out.fence = fence->front();
    return SealAnswer(std::move(out));
  }

  const Settings settings_;
  const Clock& clock_;
  std::unique_ptr<Connection> conn_;
};

}  // namespace

OpenedPostgresGuard open_postgres_guard(const PostgresTarget& target, const Clock& clock) {
  auto settings = net::postgres::read_settings(target.address, target.timeout);
  if (!settings) return settings.error();
  auto guard = std::make_unique<Guard>(std::move(*settings), clock);
  if (auto connected = guard->connect(); !connected) return connected.error();
  return guard;
}

}  // namespace stint::guard
