// Cron expressions on the clock of a zone: gaps and overlaps (the rules are in cron.h).
//
// The search goes from one stretch of constant offset to the next and asks the calendar in each.
// Where the calendar says that nothing comes for years, it goes there at once.
#include <algorithm>

#include "core/cron.h"

namespace stint::core {
namespace {

using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

// What UTC shows, taken for local time: at most kWidestOffset off in any zone.
local_seconds as_local(sys_seconds t) { return local_seconds(t.time_since_epoch()); }
sys_seconds as_instant(local_seconds t) { return sys_seconds(t.time_since_epoch()); }

// The times at which the expression's own time is looked for: a fixed one has run already at those
// that the clock shows again.
local_seconds fresh(const CronExpression& e, const ZoneSpan& span) {
  const local_seconds begin = span.local(span.begin);
  return e.interval ? begin : std::max(begin, span.reached);
}

// What was jumped over when the stretch began, to be run at its first instant.
std::optional<CronTime> after_gap(const CronExpression& e, const ZoneSpan& span) {
  const local_seconds begin = span.local(span.begin);
  if (span.reached >= begin) return std::nullopt;
  const auto nominal = nominal_from(e, span.reached);
  if (!nominal || *nominal >= begin) return std::nullopt;
  return CronTime{span.begin, span.offset, *nominal};
}

std::optional<CronTime> next_every(const CronExpression& e, const Zone& zone, sys_seconds start) {
  const auto since = start.time_since_epoch();
  seconds rest = since % e.every;
  if (rest < seconds(0)) rest += e.every;
  const sys_seconds instant = rest == seconds(0) ? start : start + (e.every - rest);
  const ZoneSpan span = zone.at(instant);
  return CronTime{instant, span.offset, span.local(instant)};
}

std::optional<CronTime> previous_every(const CronExpression& e, const Zone& zone,
                                       sys_seconds start) {
  seconds rest = start.time_since_epoch() % e.every;
  if (rest < seconds(0)) rest += e.every;
  const sys_seconds instant = start - rest;
  const ZoneSpan span = zone.at(instant);
  return CronTime{instant, span.offset, span.local(instant)};
}

// 0001-01-01 and 9999-12-31 in UTC, and some more: no zone's clock shows years within them later or
// earlier.
constexpr sys_seconds kEarliest =
    std::chrono::sys_days(std::chrono::year(1) / 1 / 1) - kWidestOffset;
constexpr sys_seconds kLatest =
    std::chrono::sys_days(std::chrono::year(10000) / 1 / 1) + kWidestOffset;

std::optional<CronTime> within_years(const std::optional<CronTime>& found) {
  if (!found) return found;
  const std::chrono::year_month_day date(std::chrono::floor<std::chrono::days>(
      local_seconds(found->instant.time_since_epoch() + found->offset)));
  const bool inside = date.year() >= std::chrono::year(1) && date.year() <= std::chrono::year(9999);
  return inside ? found : std::nullopt;
}

}  // namespace

std::optional<CronTime> next_time(const CronExpression& e, const Zone& zone, sys_seconds from,
                                  Bound bound) {
  if (from > kLatest) return std::nullopt;
  sys_seconds t = std::max(from, kEarliest);
  if (bound == Bound::Exclusive && t == from) t += seconds(1);
  if (e.every.count() > 0) return within_years(next_every(e, zone, t));
  for (;;) {
    const ZoneSpan span = zone.at(t);
    const auto nominal = nominal_from(e, std::max(span.local(t), fresh(e, span)));
    if (t == span.begin && nominal != span.local(t)) {
      if (const auto late = after_gap(e, span)) return within_years(late);
    }
    if (nominal && span.instant(*nominal) < span.end) {
      return CronTime{span.instant(*nominal), span.offset, *nominal};
    }
    // From the end of this stretch on no clock shows less than this: nothing fires before.
    const auto later = nominal_from(e, as_local(span.end) - kWidestOffset);
    if (!later) return std::nullopt;
    t = std::max(span.end, as_instant(*later) - kWidestOffset);
    if (t > kLatest) return std::nullopt;
  }
}

std::optional<CronTime> previous_time(const CronExpression& e, const Zone& zone, sys_seconds from,
                                      Bound bound) {
  if (from < kEarliest) return std::nullopt;
  sys_seconds t = std::min(from, kLatest);
  if (bound == Bound::Exclusive && t == from) t -= seconds(1);
  if (e.every.count() > 0) return within_years(previous_every(e, zone, t));
  for (;;) {
    const ZoneSpan span = zone.at(t);
    const auto nominal = nominal_until(e, span.local(t));
    if (nominal && *nominal >= fresh(e, span)) {
      return CronTime{span.instant(*nominal), span.offset, *nominal};
    }
    if (const auto late = after_gap(e, span)) return within_years(late);
    const sys_seconds before = span.begin - seconds(1);
    const auto earlier = nominal_until(e, as_local(before) + kWidestOffset);
    if (!earlier) return std::nullopt;
    t = std::min(before, as_instant(*earlier) + kWidestOffset);
    if (t < kEarliest) return std::nullopt;
  }
}

}  // namespace stint::core
