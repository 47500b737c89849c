// The calendar of cron expressions: which days, which times of a day. No zone, no daylight saving.
#include "core/cron.h"

#include <algorithm>
#include <bit>

#include "core/cron_days.h"

namespace stint::core {
namespace {

using std::chrono::days;
using std::chrono::local_days;
using std::chrono::local_seconds;
using std::chrono::month;
using std::chrono::seconds;
using std::chrono::year;

constexpr int kFirstYear = 1;
constexpr int kLastYear = 9999;
// The calendar repeats itself after so many years: what did not fire within them never does.
constexpr int kCycle = 400;

constexpr std::uint64_t from(unsigned n) { return ~std::uint64_t{0} << n; }
constexpr std::uint64_t through(unsigned n) { return ~(from(n) << 1U); }
unsigned lowest(std::uint64_t bits) { return static_cast<unsigned>(std::countr_zero(bits)); }
unsigned highest(std::uint64_t bits) { return 63U - static_cast<unsigned>(std::countl_zero(bits)); }

// One month of one year, as far as a day field must know it.
struct Month {
  unsigned length;
  unsigned first_weekday;  // of its first day; 0: Sunday

  Month(year y, unsigned m)
      : length(static_cast<unsigned>((y / month(m) / std::chrono::last).day())),
        first_weekday(std::chrono::weekday(local_days(y / month(m) / 1)).c_encoding()) {}

  unsigned weekday(unsigned day) const { return (first_weekday + day - 1) % 7; }
  std::uint64_t all() const { return through(length) & from(1); }
};

// The weekday nearest to a day, without leaving the month.
unsigned nearest_weekday(const Month& in, unsigned day) {
  constexpr unsigned kSunday = 0;
  constexpr unsigned kSaturday = 6;
  if (in.weekday(day) == kSaturday) return day == 1 ? day + 2 : day - 1;
  if (in.weekday(day) == kSunday) return day == in.length ? day - 2 : day + 1;
  return day;
}

std::uint64_t by_day_of_month(const CronExpression& e, const Month& in) {
  std::uint64_t set = e.days & in.all();
  if (e.from_last) set = *e.from_last < in.length ? bit(in.length - *e.from_last) : 0;
  if (e.nearest_weekday && set != 0) set = bit(nearest_weekday(in, lowest(set)));
  return set;
}

std::uint64_t by_day_of_week(const CronExpression& e, const Month& in) {
  // The week turned so that its lowest bit is the first day of the month, then five times in a row.
  const std::uint64_t week =
      ((e.weekdays >> in.first_weekday) | (e.weekdays << (7 - in.first_weekday))) & 0x7FU;
  constexpr std::uint64_t kFiveTimes = 0x10204081;
  std::uint64_t set = (week * kFiveTimes) << 1U & in.all();
  if (e.nth_of_week) set &= from(7 * (*e.nth_of_week - 1) + 1) & through(7 * *e.nth_of_week);
  if (e.last_of_week) set &= from(in.length - 6);
  return set;
}

std::uint64_t days_of(const CronExpression& e, year y, unsigned m) {
  if ((e.months & bit(m)) == 0) return 0;
  const Month in(y, m);
  if (e.any_day && e.any_weekday) return in.all();
  if (e.any_day) return by_day_of_week(e, in);
  if (e.any_weekday) return by_day_of_month(e, in);
  return by_day_of_month(e, in) | by_day_of_week(e, in);
}

struct TimeOfDay {
  unsigned hour;
  unsigned minute;
  unsigned second;

  explicit TimeOfDay(seconds s)
      : hour(static_cast<unsigned>(s.count() / 3600)),
        minute(static_cast<unsigned>(s.count() / 60 % 60)),
        second(static_cast<unsigned>(s.count() % 60)) {}
};

seconds time_of(unsigned hour, unsigned minute, unsigned second) {
  return seconds(hour * 3600 + minute * 60 + second);
}

seconds first_of_day(const CronExpression& e) {
  return time_of(lowest(e.hours), lowest(e.minutes), lowest(e.seconds));
}
seconds last_of_day(const CronExpression& e) {
  return time_of(highest(e.hours), highest(e.minutes), highest(e.seconds));
}

std::optional<seconds> not_before(const CronExpression& e, TimeOfDay t) {
  if ((e.hours & bit(t.hour)) != 0) {
    if ((e.minutes & bit(t.minute)) != 0) {
      if (const auto s = e.seconds & from(t.second)) return time_of(t.hour, t.minute, lowest(s));
    }
    if (const auto m = e.minutes & from(t.minute + 1)) {
      return time_of(t.hour, lowest(m), lowest(e.seconds));
    }
  }
  if (const auto h = e.hours & from(t.hour + 1)) {
    return time_of(lowest(h), lowest(e.minutes), lowest(e.seconds));
  }
  return std::nullopt;
}

std::optional<seconds> not_after(const CronExpression& e, TimeOfDay t) {
  if ((e.hours & bit(t.hour)) != 0) {
    if ((e.minutes & bit(t.minute)) != 0) {
      if (const auto s = e.seconds & through(t.second)) {
        return time_of(t.hour, t.minute, highest(s));
      }
    }
    if (const auto m = e.minutes & through(t.minute) & ~bit(t.minute)) {
      return time_of(t.hour, highest(m), highest(e.seconds));
    }
  }
  if (const auto h = e.hours & through(t.hour) & ~bit(t.hour)) {
    return time_of(highest(h), highest(e.minutes), highest(e.seconds));
  }
  return std::nullopt;
}

local_seconds moment(year y, unsigned m, unsigned d, seconds time) {
  return local_days(y / month(m) / std::chrono::day(d)) + time;
}

constexpr local_seconds kFirst = local_days(year(kFirstYear) / 1 / 1);
constexpr local_seconds kLast = local_days(year(kLastYear + 1) / 1 / 1) - seconds(1);

}  // namespace

std::optional<local_seconds> nominal_from(const CronExpression& e, local_seconds start) {
  if (start > kLast) return std::nullopt;
  start = std::max(start, kFirst);
  const auto today = std::chrono::floor<days>(start);
  const std::chrono::year_month_day date(today);
  const auto d = static_cast<unsigned>(date.day());
  year y = date.year();
  unsigned m = static_cast<unsigned>(date.month());
  std::uint64_t set = days_of(e, y, m);
  if ((set & bit(d)) != 0) {
    if (const auto time = not_before(e, TimeOfDay(start - today))) return today + *time;
  }
  set &= from(d + 1);
  const year end = std::min(y + std::chrono::years(kCycle + 1), year(kLastYear));
  while (set == 0) {
    const std::uint64_t later = e.months & from(m + 1);
    m = lowest(later != 0 ? later : e.months);
    if (later == 0) ++y;
    if (y > end) return std::nullopt;
    set = days_of(e, y, m);
  }
  return moment(y, m, lowest(set), first_of_day(e));
}

std::optional<local_seconds> nominal_until(const CronExpression& e, local_seconds until) {
  if (until < kFirst) return std::nullopt;
  until = std::min(until, kLast);
  const auto today = std::chrono::floor<days>(until);
  const std::chrono::year_month_day date(today);
  const auto d = static_cast<unsigned>(date.day());
  year y = date.year();
  unsigned m = static_cast<unsigned>(date.month());
  std::uint64_t set = days_of(e, y, m);
  if ((set & bit(d)) != 0) {
    if (const auto time = not_after(e, TimeOfDay(until - today))) return today + *time;
  }
  set &= through(d - 1);
  const year end = std::max(y - std::chrono::years(kCycle + 1), year(kFirstYear));
  while (set == 0) {
    const std::uint64_t earlier = e.months & through(m - 1);
    m = highest(earlier != 0 ? earlier : e.months);
    if (earlier == 0) --y;
    if (y < end) return std::nullopt;
    set = days_of(e, y, m);
  }
  return moment(y, m, highest(set), last_of_day(e));
}

std::uint64_t suitable_days(const CronExpression& e, local_days start, local_days end) {
  start = std::max(start, std::chrono::floor<days>(kFirst));
  end = std::min(end, std::chrono::floor<days>(kLast) + days(1));
  std::uint64_t n = 0;
  while (start < end) {
    const std::chrono::year_month_day date(start);
    const local_days next = local_days((date.year() / date.month() / 1) + std::chrono::months(1));
    const local_days stop = std::min(next, end);
    const auto first = static_cast<unsigned>(date.day());
    const auto last = first + static_cast<unsigned>((stop - start).count()) - 1;
    const std::uint64_t set = days_of(e, date.year(), static_cast<unsigned>(date.month()));
    n += static_cast<std::uint64_t>(std::popcount(set & from(first) & through(last)));
    start = stop;
  }
  return n;
}

bool ever_fires(const CronExpression& e) {
  constexpr year kAny(2000);
  return e.every.count() > 0 || nominal_from(e, local_days(kAny / 1 / 1)).has_value();
}

}  // namespace stint::core
