#include "store/postgres/renewal.h"

namespace stint::store::postgres {
namespace {

enum RenewalColumn { kRenewedAt, kTouched, kRunning, kChecked, kDone, kRenewalColumns };

}  // namespace

// Each part is made when the next one needs it: the first row is locked, the time is taken, the
// second is locked, and only then anything is written.
const char* const kRenewalSql =
    "WITH a AS MATERIALIZED (SELECT r.version, r.at, r.fires_at, r.ttl_ms FROM $S.record r"
    " WHERE r.key = $1 FOR UPDATE),"
    " j AS MATERIALIZED (SELECT a.version, a.fires_at, a.ttl_ms, n.now,"
    " greatest(n.now, a.at) AS judged, $5 * interval '1 millisecond' AS wanted"
    " FROM a, LATERAL (SELECT clock_timestamp() AS now, a.version) n),"
    " c AS MATERIALIZED (SELECT r.version FROM $S.record r"
    " WHERE r.key = $2 AND (SELECT count(*) FROM j) >= 0 FOR KEY SHARE),"
    " u AS (UPDATE $S.record r SET at = j.now,"
    " fires_at = j.now + greatest(j.fires_at - j.judged, j.wanted),"
    " ttl_ms = CASE WHEN j.fires_at - j.judged > j.wanted THEN j.ttl_ms ELSE $5 END"
    " FROM j WHERE r.key = $1 AND j.version = $3 AND j.judged < j.fires_at"
    " AND EXISTS (SELECT FROM c WHERE c.version = $4) RETURNING 1)"
    " SELECT coalesce(j.now, clock_timestamp()), coalesce(j.version, 0),"
    " coalesce(j.judged < j.fires_at, false), coalesce((SELECT c.version FROM c), 0),"
    " EXISTS (SELECT FROM u) FROM (SELECT 1) one LEFT JOIN j ON true";

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

Result<CommitAnswer> renewal_result(const Rows& rows, const std::vector<Step>& steps,
                                    const Renewal& renewal) {
  if (auto ok = rows.expect_columns(kRenewalColumns); !ok) return ok.error();
  if (rows.count() != 1) return unavailable("the server answered with no row, or several");
  const auto now = rows.instant(0, kRenewedAt);
  const auto touched = rows.bigint(0, kTouched);
  const auto running = rows.boolean(0, kRunning);
  const auto checked = rows.bigint(0, kChecked);
  const auto done = rows.boolean(0, kDone);
  if (!now) return now.error();
  if (!touched) return touched.error();
  if (!running) return running.error();
  if (!checked) return checked.error();
  if (!done) return done.error();
  const bool touch_holds =
      static_cast<Version>(*touched) == steps[renewal.touch].version && *running;
  const bool check_holds = static_cast<Version>(*checked) == steps[renewal.check].version;
  if (*done != (touch_holds && check_holds)) return unavailable("the server contradicts itself");
  if (!*done) {
    if (touch_holds) return CommitAnswer(Conflict{renewal.check});
    if (check_holds) return CommitAnswer(Conflict{renewal.touch});
    return CommitAnswer(Conflict{0});
  }
  Committed out;
  out.versions = {steps[0].version, steps[1].version};
  out.granted_ttl = {steps[0].ttl, steps[1].ttl};
  out.store_wall = wall_from_ms(*now / 1000);
  out.store_time = std::chrono::microseconds(*now);
  return CommitAnswer(std::move(out));
}

}  // namespace stint::store::postgres
