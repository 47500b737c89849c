#include "store/postgres/renewal.h"

namespace stint::store::postgres {
namespace {

enum RenewalColumn { kRenewedAt, kRenewalHolds, kRenewalColumns };

}  // namespace

// One update, as plain as a renewal can be. Where the touched record is not as it was seen, or its
// timer has fired, there is no row and nothing was done. What is judged after the update, and so
// under the row's lock, fails the statement (22012), which undoes it: that the checked record is as
// it was seen, and that the timer still ran then. The update may have waited for who held the row,
// and the check for who held the other: so the timer is judged last, by a look of its own (what is
// selected beside a lock is worked out before the lock is waited for).
// `b` is the row as the statement found it: one that was touched meanwhile fails as well.   G3
const char* const kRenewalSql =
    "UPDATE $S.record r SET at = clock_timestamp(), fires_at = clock_timestamp()"
    " + greatest(r.fires_at - greatest(clock_timestamp(), r.at), $5 * interval '1 millisecond'),"
    " ttl_ms = CASE WHEN r.fires_at - greatest(clock_timestamp(), r.at) > $5 * interval"
    " '1 millisecond' THEN r.ttl_ms ELSE $5 END"
    " WHERE r.key = $1 AND r.version = $3 AND greatest(clock_timestamp(), r.at) < r.fires_at"
    " RETURNING r.at, 1 / CASE WHEN (SELECT o.version = $4"
    " FROM $S.record o WHERE o.key = $2 FOR KEY SHARE) AND"
    " (SELECT greatest(clock_timestamp(), b.at) < b.fires_at FROM $S.record b WHERE b.key = $1)"
    " THEN 1 ELSE 0 END";

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
  if (rows.count() == 0) return std::optional<CommitResult>();
  if (rows.count() != 1) return unavailable("the server answered with several rows");
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
