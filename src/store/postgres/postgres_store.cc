#include "store/postgres/postgres_store.h"

#include <algorithm>

#include "base/text.h"
#include "store/postgres/commit_call.h"
#include "store/postgres/many_commit.h"
#include "store/postgres/reading.h"
#include "store/postgres/renewal.h"
#include "store/postgres/schema.h"
#include "store/steps.h"

namespace stint::store {
namespace {

using postgres::Params;
using postgres::Rows;
using postgres::Settings;
using postgres::Statement;

Statement statement(const Settings& settings, std::string name, std::string_view sql) {
  return {.name = std::move(name), .sql = settings.sql(sql)};
}

// What the statements and functions use, no more: a role that was granted just that is well.
constexpr const char* kRights =
    "SELECT current_user::text, coalesce((SELECT string_agg(w.what, ', ') FROM ("
    "  SELECT p || ' on ' || t::regclass::text AS what"
    "   FROM unnest(ARRAY['SELECT','INSERT','UPDATE','DELETE']) p,"
    "   unnest(ARRAY['$S.record','$S.meta','$S.mark','$S.waiter']) t"
    "   WHERE NOT has_table_privilege(t, p)"
    "    AND NOT (t = '$S.meta' AND p IN ('INSERT','DELETE'))"
    "    AND NOT (t IN ('$S.mark','$S.waiter') AND p = 'UPDATE')"
    "  UNION ALL SELECT 'UPDATE on ' || t::regclass::text"
    "   FROM unnest(ARRAY['$S.version','$S.revision','$S.nth']) t"
    "   WHERE NOT has_sequence_privilege(t, CASE WHEN t = '$S.version' THEN 'UPDATE'"
    "    ELSE 'USAGE, UPDATE' END)"
    "  UNION ALL SELECT 'SELECT on ' || '$S.revision'::regclass::text"
    "   WHERE NOT has_sequence_privilege('$S.revision', 'SELECT')) w), '')::text,"
    " (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),"
    " has_schema_privilege('public', (SELECT c.relnamespace FROM pg_class c"
    "  WHERE c.oid = '$S.record'::regclass), 'USAGE')"
    "  AND has_table_privilege('public', '$S.record', 'INSERT, UPDATE, DELETE')";

bool holds(const Step& step, const Entry& entry) {
  if (step.expect == Expect::Absent && entry.present()) return false;
  if (step.expect == Expect::Seen && step.version != entry.version) return false;
  return !step.demand || *step.demand == entry.timer.state;
}

Error unknown(const Error& error) { return postgres::sent_unanswered(error); }

// Nothing of it was done, and the same may well succeed now, the general way.
bool worth_another(const postgres::Fault& fault, bool plainly) {
  // 23505: a record appeared that was to be made; the function says STR01. 22012: what renewal.cc
  // judged last did not hold.
  const bool stated = plainly && (fault.state == "23505" || fault.state == "22012");
  return fault.certain &&
         (stated || fault.state == "STR01" || fault.state == "40001" || fault.state == "40P01");
}

}  // namespace

PostgresStore::PostgresStore(Settings settings, const Clock& clock)
    : settings_(std::move(settings)),
      clock_(clock),
      read_(statement(settings_, "stint_read", postgres::kReadSql)),
      read_short_(statement(settings_, "stint_read_short", postgres::kReadShortSql)),
      scan_(statement(settings_, "stint_scan", postgres::scan_sql("ASC"))),
      scan_back_(statement(settings_, "stint_scan_back", postgres::scan_sql("DESC"))),
      commit_(statement(settings_, "stint_commit", postgres::kCommitSql)),
      renewal_(statement(settings_, "stint_renewal", postgres::kRenewalSql)),
      wake_(statement(settings_, "stint_wake", "SELECT $S.wake($1, $2)")),
      appended_(statement(settings_, "stint_appended", postgres::kAppendedSql)),
      revision_(statement(settings_, "stint_revision", "SELECT s.last_value FROM $S.revision s")),
      many_{statement(settings_, "stint_many", postgres::many_sql(false, false)),
            statement(settings_, "stint_many_relaxed", postgres::many_sql(true, false)),
            statement(settings_, "stint_many_last", postgres::many_sql(false, true)),
            statement(settings_, "stint_many_last_relaxed", postgres::many_sql(true, true))},
      mark_(statement(settings_, "stint_mark", postgres::kMarkSql)),
      plain_(settings_),
      pool_(settings_, clock),
      // More lanes mean smaller batches: with 32 threads on two processors three of each did a
      // quarter less.
      reads_({.alone = [this](ReadTask& task) { task.answer = read_alone(task); },
              .together = [this](const auto& tasks) { read_together(tasks); },
              .lanes = 2}),
      commits_({.alone = [this](CommitTask& task) { task.answer = commit_alone(task); },
                .together = [this](const auto& tasks) { commit_together(tasks); },
                .lanes = 1}) {}

PostgresStore::~PostgresStore() = default;

Result<std::unique_ptr<Store>> PostgresStore::open(const OpenRequest& request, const Clock& clock) {
  auto settings = net::postgres::read_settings(request.address, request.timeout);
  if (!settings) return settings.error();
  std::unique_ptr<PostgresStore> store(new PostgresStore(std::move(*settings), clock));
  if (auto entered = store->enter(request.may_create); !entered) {
    return std::move(entered.error()).during(cat("opening ", store->settings_.printable));
  }
  return std::unique_ptr<Store>(std::move(store));
}

Result<postgres::Pool::Loan> PostgresStore::first_connection(MonoTime until) {
  if (settings_.pooler.value_or(false)) pool_.set_pooled();
  auto loan = pool_.borrow(until);
  if (loan || settings_.pooler) return loan;
  // A pooler that knows nothing of a session's own settings says so at the door.
  if (loan.error().message.find("startup parameter") == std::string::npos) return loan;
  pool_.set_pooled();
  return pool_.borrow(until);
}

Status PostgresStore::enter(bool may_create) {
  const MonoTime until = deadline();
  auto loan = first_connection(until);
  if (!loan) return loan.error();
  auto entered = postgres::enter(**loan, settings_, may_create, until);
  if (!entered) return entered.error();
  if (entered->through_pooler && !settings_.pooler) pool_.set_pooled();
  gated_ = entered->gated;
  opening_.created = entered->created;
  saw(entered->revision);
  capabilities_ = {.name = "postgres",
                   .clock = Capabilities::ClockKind::Wall,
                   .smallest_ttl = Millis(100),
                   .ttl_grain = Millis(1),
                   .step = Millis(1),
                   .failover_restarts_timers = false,
                   .durable = entered->fsync,
                   .failover_loses = entered->replicas_lag,
                   .relaxed_renewals = false,
                   .may_lose = entered->fsync
                                   ? "releases and progress of the last moments, in a crash; with "
                                     "an asynchronous replica, all of them in a fail-over"
                                   : "anything: the server runs with fsync = off"};
  const bool may_listen = !pool_.pooled() || settings_.listen;
  listener_ = std::make_unique<postgres::Listener>(settings_, clock_, may_listen);
  return {};
}

void PostgresStore::saw(std::uint64_t revision) {
  std::uint64_t last = last_revision_;
  while (last < revision && !last_revision_.compare_exchange_weak(last, revision)) {
  }
}

Result<Rows> PostgresStore::ask(const Statement& statement, const Params& params) {
  return ask(statement, params, deadline());
}

Result<Rows> PostgresStore::ask(const Statement& statement, const Params& params, MonoTime until) {
  for (int i = 0;; ++i) {
    auto loan = pool_.borrow(until);
    if (!loan) return loan.error();
    auto rows = (*loan)->run(statement, params, until);
    if (rows) return std::move(*rows);
    // The connection was lost on the way: another may do better, once.
    const bool again = (*loan)->broken() && i == 0 && clock_.mono() < until;
    if (!again) return rows.error().error;
  }
}

// What the guide says to grant, asked one by one: the first use of a right may come months later.
Result<Finding> PostgresStore::examine_rights() {
  using Level = Finding::Level;
  auto rows = ask(statement(settings_, "stint_rights", kRights), Params());
  if (!rows) return rows.error();
  if (auto ok = rows->expect_columns(4); !ok) return ok.error();
  auto user = rows->text(0, 0);
  if (!user) return user.error();
  auto missing = rows->text(0, 1);
  if (!missing) return missing.error();
  auto super = rows->boolean(0, 2);
  if (!super) return super.error();
  auto everybody = rows->boolean(0, 3);
  if (!everybody) return everybody.error();
  const std::string who = cat("the user ", quoted(printable(*user)));
  if (!missing->empty()) {
    return Finding{Level::Fail, "permissions", cat(who, " lacks ", printable(*missing))};
  }
  if (*everybody) {
    return Finding{Level::Warn, "permissions",
                   "every role of this database may write the records, and so change any lease: "
                   "REVOKE ALL ... FROM PUBLIC"};
  }
  if (*super) {
    return Finding{Level::Warn, "permissions",
                   cat(who, " is a superuser: Stint needs a role of its own, no more")};
  }
  return Finding{Level::Ok, "permissions",
                 cat(who, " may do all that is needed in the schema, and not everybody may")};
}

Result<std::vector<Finding>> PostgresStore::examine() {
  using Level = Finding::Level;
  // By no name: asked once, not worth preparing.
  auto rows = ask({"stint_examine",
                   "SELECT current_setting('server_version')::text, pg_is_in_recovery(),"
                   " current_setting('synchronous_standby_names')::text,"
                   " (SELECT count(*) FROM pg_stat_replication),"
                   " current_setting('full_page_writes') = 'on'"},
                  Params());
  if (!rows) return rows.error();
  if (auto ok = rows->expect_columns(5); !ok) return ok.error();
  auto version = rows->text(0, 0);
  if (!version) return version.error();
  auto recovery = rows->boolean(0, 1);
  if (!recovery) return recovery.error();
  auto standbys = rows->text(0, 2);
  if (!standbys) return standbys.error();
  auto replicas = rows->bigint(0, 3);
  if (!replicas) return replicas.error();
  auto whole_pages = rows->boolean(0, 4);
  if (!whole_pages) return whole_pages.error();
  std::vector<Finding> out = {{Level::Ok, "version", cat("PostgreSQL ", printable(*version))}};
  auto rights = examine_rights();
  if (!rights) return rights.error();
  out.push_back(std::move(*rights));
  if (!*whole_pages) {
    out.push_back({Level::Warn, "pages",
                   "full_page_writes is off: a power cut may damage the database, unless its file "
                   "system never tears a page (ZFS)"});
  }
  if (*recovery) out.push_back({Level::Fail, "role", "a replica: it cannot be written to"});
  if (*replicas > 0 && standbys->empty()) {
    out.push_back({Level::Warn, "replicas",
                   "its replicas are asynchronous: a fail-over may lose grants and repeat tokens; "
                   "set synchronous_standby_names"});
  }
  if (pool_.pooled()) {
    const bool listens = settings_.listen.has_value();
    out.push_back({listens ? Level::Ok : Level::Warn, "pooler",
                   listens ? "through a transaction pooler; waiters listen beside it"
                           : "through a transaction pooler: waiters look once a second; name the "
                             "server itself with ?listen=HOST:PORT"});
  }
  return out;
}

Result<Reading> PostgresStore::read(const std::vector<std::string>& keys) {
  ReadTask task{.keys = keys, .until = deadline()};
  reads_.run(task);
  return std::move(*task.answer);
}

// The store's own record is there in every store that somebody has entered.
Result<Rows> PostgresStore::ask_for(const std::vector<std::string_view>& keys, MonoTime until) {
  const Params params = Params().byte_arrays(keys);
  if (std::ranges::any_of(keys, hardly_written)) {
    auto rows = ask(read_short_, params, until);
    if (!rows || rows->count() > 0) return rows;
  }
  return ask(read_, params, until);
}

Result<Reading> PostgresStore::read_alone(const ReadTask& task) {
  const std::vector<std::string_view> views(task.keys.begin(), task.keys.end());
  auto rows = ask_for(views, task.until);
  if (!rows) return rows.error();
  auto reading = postgres::reading_of(*rows);
  if (!reading) return reading.error();
  std::ranges::sort(reading->entries, {}, &Entry::key);
  reading->entries = postgres::picked(reading->entries, task.keys);
  return reading;
}

Result<Reading> PostgresStore::scan(const ScanRange& range) {
  // Everything that begins with the prefix stands below the prefix with its highest successor.
  const std::string end = range.prefix + "\xFF";
  const bool back = range.backwards;
  const std::string& low = back ? range.prefix : std::max(range.prefix, range.after);
  const std::string& high = back && !range.after.empty() ? std::min(range.after, end) : end;
  constexpr std::size_t kMost = 1U << 30U;
  Params params;
  params.bytes(low).bytes(high).bytes(range.after);
  params.bigint(static_cast<std::int64_t>(std::min(range.limit, kMost)));
  auto rows = ask(back ? scan_back_ : scan_, params);
  if (!rows) return rows.error();
  return postgres::reading_of(*rows);
}

// A commit that writes nothing needs no lock: one reading is of one moment.
Result<CommitAnswer> PostgresStore::check(const std::vector<Step>& steps) {
  std::vector<std::string> keys;
  for (const Step& step : steps) keys.push_back(step.key);
  auto reading = read(keys);
  if (!reading) return reading.error();
  Committed done;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!holds(steps[i], reading->entries[i])) return CommitAnswer(Conflict{i});
    done.versions.push_back(reading->entries[i].version);
    done.granted_ttl.push_back(steps[i].ttl);
  }
  done.revision = last_revision_;
  done.store_wall = reading->store_wall;
  done.store_time = reading->store_time;
  return CommitAnswer(std::move(done));
}

Result<CommitAnswer> PostgresStore::commit(const std::vector<Step>& steps, Sync sync) {
  if (auto ok = check_sizes(steps); !ok) return ok.error();
  const auto only_checks = [](const Step& step) { return step.kind == Step::Kind::Check; };
  if (std::ranges::all_of(steps, only_checks)) return check(steps);
  CommitTask task{.steps = steps, .sync = sync, .until = deadline()};
  commits_.run(task);
  return std::move(*task.answer);
}

Result<CommitAnswer> PostgresStore::commit_alone(CommitTask& task) {
  if (pool_.crowded()) {
    // Unless it wants a row that somebody has it need not wait behind those who do.
    commit_together({&task});
    if (task.answer) return std::move(*task.answer);
  }
  for (bool plainly = true;; plainly = false) {
    auto answer = commit_once(task.steps, task.sync, task.until, plainly);
    if (!answer) return answer.error();
    if (*answer) return std::move(**answer);
    if (clock_.mono() >= task.until) {
      return unavailable(cat("others were quicker for ", format_duration(settings_.timeout)));
    }
  }
}

PostgresStore::Went PostgresStore::send(postgres::Connection& conn, const std::vector<Step>& steps,
                                        Sync sync, MonoTime until, bool plainly) {
  postgres::CommitSettings how;
  if (conn.pooled()) {
    how.wait_ms = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(settings_.timeout.count() * 4 / 5, 1, INT32_MAX));
    how.sync = "on";
  } else {
    how.mark = conn.mark;
  }
  if (sync == Sync::Relaxed) how.sync = "off";
  // A plain statement takes the session's own settings as they are.
  const bool own_settings = plainly && !conn.pooled();
  if (const auto renewal = own_settings && !how.sync ? postgres::renewal_of(steps) : std::nullopt) {
    return {conn.run(renewal_, postgres::renewal_params(steps, *renewal), until), Way::Renewal};
  }
  if (own_settings) {
    const postgres::PlainSettings plain{
        .relaxed = sync == Sync::Relaxed, .gated = gated_, .mark = how.mark};
    const auto shaped = postgres::plain_steps(steps, plain);
    const Statement* statement = shaped ? plain_.of(*shaped, plain) : nullptr;
    if (statement != nullptr) {
      return {conn.run(*statement, postgres::plain_params(*shaped, plain), until), Way::Plain};
    }
  }
  return {conn.run(commit_, postgres::commit_params(steps, how), until), Way::General};
}

Result<std::optional<CommitAnswer>> PostgresStore::commit_once(const std::vector<Step>& steps,
                                                               Sync sync, MonoTime until,
                                                               bool plainly) {
  using Answer = std::optional<CommitAnswer>;
  auto loan = pool_.borrow(until, postgres::Pool::Use::Patient);
  if (!loan) return loan.error();
  auto [rows, way] = send(**loan, steps, sync, until, plainly);
  if (!rows) {
    const postgres::Fault& fault = rows.error();
    if (worth_another(fault, way != Way::General)) return Answer();
    return fault.certain ? fault.error : unknown(fault.error);
  }
  auto result = read_result(*rows, steps, way);
  if (!result) {
    loan->spoil();
    return unknown(result.error());
  }
  // Only the general way tells of the mark; a plain commit that was not done may be for its sake.
  if (!(*loan)->pooled() && way == Way::General) (*loan)->mark = (*result)->mark;
  if (!*result) {
    if (way == Way::Plain) (*loan)->mark.reset();
    return Answer();
  }
  return Answer(answered(*loan, std::move(**result)));
}

Result<std::optional<postgres::CommitResult>> PostgresStore::read_result(
    const Rows& rows, const std::vector<Step>& steps, Way way) {
  switch (way) {
    case Way::Plain: return postgres::plain_result(rows, steps);
    case Way::Renewal: return postgres::renewal_result(rows, steps);
    case Way::General: break;
  }
  auto result = postgres::commit_result(rows, steps);
  if (!result) return result.error();
  return std::optional(std::move(*result));
}

// What the server said; and whoever waits for it is told.
CommitAnswer PostgresStore::answered(postgres::Pool::Loan& loan, postgres::CommitResult result) {
  if (!result.marked.empty()) wake(*loan, result.marked, result.xid);
  if (auto* done = std::get_if<Committed>(&result.answer)) {
    saw(done->revision);
    if (done->revision == 0) done->revision = last_revision_;
  }
  return std::move(result.answer);
}

// Apart from the commit, which must not be slowed: whoever dies before this is why a waiter looks
// again after a while.
void PostgresStore::wake(postgres::Connection& conn, const std::vector<std::string>& keys,
                         std::int64_t xid) {
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  [[maybe_unused]] const bool said =
      conn.run(wake_, Params().byte_arrays(views).bigint(xid), deadline()).has_value();
}

Result<std::unique_ptr<Watch>> PostgresStore::watch(std::string_view key) {
  return listener_->watch(key);
}

Result<std::uint64_t> PostgresStore::appended(const std::string& prefix) {
  auto rows = ask(appended_, Params().bytes(prefix).bytes(prefix + "\xFF"));
  if (!rows) return rows.error();
  const auto count = rows->bigint(0, 0);
  if (!count) return count.error();
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, *count));
}

Result<std::uint64_t> PostgresStore::revision() {
  auto rows = ask(revision_, Params());
  if (!rows) return rows.error();
  const auto revision = rows->bigint(0, 0);
  if (!revision) return revision.error();
  return static_cast<std::uint64_t>(*revision);
}

}  // namespace stint::store
