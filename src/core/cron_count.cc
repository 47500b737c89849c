// How often an expression fires between two instants: by whole days of the calendar, from one
// stretch of constant offset to the next, never slot by slot.
#include <algorithm>
#include <bit>

#include "core/cron_days.h"
#include "core/slots.h"

namespace stint::core {
namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_seconds;

std::uint64_t bits(std::uint64_t set) { return static_cast<std::uint64_t>(std::popcount(set)); }
// Of the set's members, those below n.
std::uint64_t below(std::uint64_t set, std::int64_t n) {
  return bits(set & ((std::uint64_t{1} << n) - 1));
}

// Times of one suitable day that lie before this time of day.
std::uint64_t before_time(const CronExpression& e, seconds time) {
  const std::int64_t s = time.count();
  const std::int64_t hour = s / 3600;
  const std::int64_t minute = s / 60 % 60;
  std::uint64_t n = below(e.hours, hour) * bits(e.minutes) * bits(e.seconds);
  if ((e.hours >> hour & 1U) != 0) {
    n += below(e.minutes, minute) * bits(e.seconds);
    if ((e.minutes >> minute & 1U) != 0) n += below(e.seconds, s % 60);
  }
  return n;
}

// Nominal times in [from, to).
std::uint64_t nominal_count(const CronExpression& e, local_seconds from, local_seconds to) {
  if (from >= to) return 0;
  const local_days first = std::chrono::floor<days>(from);
  const local_days last = std::chrono::floor<days>(to);
  const std::uint64_t suitable = suitable_days(e, first, last);
  std::uint64_t n = suitable * bits(e.hours) * bits(e.minutes) * bits(e.seconds);
  if (suitable_days(e, last, last + days(1)) == 1) n += before_time(e, to - last);
  if (suitable_days(e, first, first + days(1)) == 1) n -= before_time(e, from - first);
  return n;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

// Whether what was jumped over before the stretch makes a run of its own at its first instant.
bool runs_after_gap(const CronExpression& e, const ZoneSpan& span) {
  const local_seconds begin = span.local(span.begin);
  return nominal_count(e, span.reached, begin) > 0 &&
         nominal_count(e, begin, begin + seconds(1)) == 0;
}

}  // namespace

std::uint64_t count_times(const CronExpression& e, const Zone& zone, sys_seconds after,
                          sys_seconds until) {
  if (until <= after) return 0;
  if (e.every.count() > 0) {
    const std::int64_t step = e.every.count();
    return static_cast<std::uint64_t>(floor_div(until.time_since_epoch().count(), step) -
                                      floor_div(after.time_since_epoch().count(), step));
  }
  std::uint64_t n = 0;
  const sys_seconds end = until + seconds(1);
  for (sys_seconds t = after + seconds(1); t < end;) {
    const ZoneSpan span = zone.at(t);
    const sys_seconds stop = std::min(span.end, end);
    local_seconds from = span.local(t);
    if (!e.interval) from = std::max(from, span.reached);
    n += nominal_count(e, from, span.local(stop));
    if (t == span.begin && runs_after_gap(e, span)) ++n;
    t = stop;
  }
  return n;
}

}  // namespace stint::core
