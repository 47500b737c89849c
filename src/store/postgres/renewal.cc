#include "store/postgres/renewal.h"

namespace stint::store::postgres {
namespace {

enum RenewalColumn { kRenewedAt, kRenewalSetting, kRenewalColumns };

}  // namespace

// One node locks both rows, in the order of the clauses; then the time is taken, and only then
// anything is written. Where something does not hold there is no row, and nothing to be synced.
const char* const kRenewalSql =
    "WITH g AS MATERIALIZED (SELECT n.now FROM (SELECT a.version AS touched, a.at, a.fires_at,"
    " o.version AS checked FROM $S.record a, $S.record o WHERE a.key = $1 AND o.key = $2"
    " FOR UPDATE OF a FOR KEY SHARE OF o) q,"
    " LATERAL (SELECT clock_timestamp() AS now, q.touched) n"
    " WHERE q.touched = $3 AND q.checked = $4 AND greatest(n.now, q.at) < q.fires_at),"
    " u AS (UPDATE $S.record r SET at = g.now, fires_at = g.now"
    " + greatest(r.fires_at - greatest(g.now, r.at), $5 * interval '1 millisecond'),"
    " ttl_ms = CASE WHEN r.fires_at - greatest(g.now, r.at) > $5 * interval '1 millisecond'"
    " THEN r.ttl_ms ELSE $5 END FROM g WHERE r.key = $1)"
    " SELECT g.now, CASE WHEN g.now IS NULL THEN set_config('synchronous_commit', 'off', true) END"
    " FROM (SELECT 1) one LEFT JOIN g ON true";

std::optional<Renewal> renewal_of(const std::vector<Step>& steps) {
  if (steps.size() != 2) return std::nullopt;
  Renewal out;
  out.touch = steps[0].kind == Step::Kind::Touch ? 0 : 1;
  out.check = 1 - out.touch;
  const Step& touch = steps[out.touch];
  const Step& check = steps[out.check];
  const auto seen = [](const Step& step) {
    return step.expect == Expect::Seen && step.version > 0 && step.version <= INT64_MAX;
  };
  const bool fits = touch.kind == Step::Kind::Touch && touch.timer == Step::TimerOp::Extend &&
                    touch.demand == TimerState::Running && seen(touch) &&
                    check.kind == Step::Kind::Check && !check.demand && seen(check) &&
                    touch.key < check.key;
  return fits ? std::optional(out) : std::nullopt;
}

Params renewal_params(const std::vector<Step>& steps, const Renewal& renewal) {
  const Step& touch = steps[renewal.touch];
  const Step& check = steps[renewal.check];
  Params out;
  out.bytes(touch.key).bytes(check.key);
  out.bigint(static_cast<std::int64_t>(touch.version));
  out.bigint(static_cast<std::int64_t>(check.version)).bigint(touch.ttl.count());
  return out;
}

Result<std::optional<CommitResult>> renewal_result(const Rows& rows,
                                                   const std::vector<Step>& steps) {
  if (auto ok = rows.expect_columns(kRenewalColumns); !ok) return ok.error();
  if (rows.count() != 1) return unavailable("the server answered with no row, or several");
  if (rows.is_null(0, kRenewedAt)) return std::optional<CommitResult>();
  const auto now = rows.instant(0, kRenewedAt);
  if (!now) return now.error();
  Committed done;
  done.versions = {steps[0].version, steps[1].version};
  done.granted_ttl = {steps[0].ttl, steps[1].ttl};
  done.store_wall = wall_from_ms(*now / 1000);
  done.store_time = std::chrono::microseconds(*now);
  CommitResult out;
  out.answer = std::move(done);
  return std::optional(std::move(out));
}

}  // namespace stint::store::postgres
