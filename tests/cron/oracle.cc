#include "tests/cron/oracle.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>

#include "base/text.h"

namespace stint::test {
namespace {

constexpr std::int64_t kDay = 86'400;

std::int64_t offset_at(std::int64_t instant) {
  const std::time_t t = instant;
  std::tm out{};
  ::localtime_r(&t, &out);
  return out.tm_gmtoff;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

struct MadeField {
  std::string text;
  std::vector<bool> set;  // by value
  bool interval = false;
};

struct Kind {
  int first;
  int last;
  int steps;  // the largest step
};
constexpr Kind kSixty{0, 59, 59};
constexpr Kind kHour{0, 23, 23};
constexpr Kind kMonthDay{1, 31, 31};
constexpr Kind kMonth{1, 12, 12};
constexpr Kind kWeekday{0, 6, 7};

int pick(Random& random, int least, int most) {
  return least + static_cast<int>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

// From one value to another, one by one and around the end; every step-th counts.
void mark(MadeField& field, const Kind& kind, int from, int to, int step) {
  int left = 0;
  for (int value = from;; value = value == kind.last ? kind.first : value + 1) {
    if (left == 0) {
      field.set[static_cast<std::size_t>(value)] = true;
      left = step;
    }
    --left;
    if (value == to) return;
  }
}

MadeField make_field(Random& random, const Kind& kind) {
  MadeField out;
  out.set.assign(64, false);
  const int a = pick(random, kind.first, kind.last);
  const int b = pick(random, kind.first, kind.last);
  const int step = pick(random, 1, std::min(kind.steps, random.below(2) == 0 ? 6 : kind.steps));
  out.interval = true;
  switch (random.below(8)) {
    case 0:
      out.text = random.below(4) == 0 ? "?" : "*";
      mark(out, kind, kind.first, kind.last, 1);
      break;
    case 1:
      out.text = cat("*/", step);
      mark(out, kind, kind.first, kind.last, step);
      break;
    case 2:
      out.text = cat(a, "-", b);
      mark(out, kind, a, b, 1);
      break;
    case 3:
      out.text = cat(a, "-", b, "/", step);
      mark(out, kind, a, b, step);
      break;
    case 4:
      out.text = cat(a, ",", b, ",", kind.last);
      mark(out, kind, a, a, 1);
      mark(out, kind, b, b, 1);
      mark(out, kind, kind.last, kind.last, 1);
      out.interval = false;
      break;
    default:
      out.text = a < 10 && random.below(2) == 0 ? cat("0", a) : cat(a);
      mark(out, kind, a, a, 1);
      out.interval = false;
  }
  return out;
}

bool is_star(const std::string& text) { return text == "*" || text == "?" || text == "*/1"; }

int weekday_of(const Day& in, int day) { return ((in.weekday + day - in.day) % 7 + 7) % 7; }

// The working day nearest to `day`, by looking at all of the month.
int nearest(const Day& in, int day) {
  int best = 99;
  for (int d = 1; d <= in.length; ++d) {
    const int weekday = weekday_of(in, d);
    if (weekday == 0 || weekday == 6) continue;
    if (std::abs(d - day) < std::abs(best - day)) best = d;
  }
  return best;
}

using Suits = std::function<bool(const Day&)>;

std::pair<std::string, Suits> make_month_days(Random& random) {
  const int n = pick(random, 1, 31);
  const int back = pick(random, 0, 30);
  switch (random.below(16)) {
    case 0: return {"L", [](const Day& d) { return d.day == d.length; }};
    case 1: return {"LW", [](const Day& d) { return d.day == nearest(d, d.length); }};
    case 2: return {cat("l-", back), [back](const Day& d) { return d.day == d.length - back; }};
    case 3:
      return {cat("L-", back, "W"), [back](const Day& d) {
                return back < d.length && d.day == nearest(d, d.length - back);
              }};
    case 4:
      return {cat(n, "W"), [n](const Day& d) { return n <= d.length && d.day == nearest(d, n); }};
    case 5:
    case 6:
    case 7:
    case 8: return {"*", [](const Day&) { return true; }};
    default: break;
  }
  const MadeField field = make_field(random, kMonthDay);
  return {field.text, [field](const Day& d) { return field.set[static_cast<std::size_t>(d.day)]; }};
}

std::pair<std::string, Suits> make_weekdays(Random& random) {
  constexpr std::array<const char*, 7> kNames = {"sun", "MON", "Tue", "wed", "THU", "fri", "sat"};
  const int day = pick(random, 0, 6);
  const int nth = pick(random, 1, 5);
  const std::string name = random.below(2) == 0 ? cat(day) : kNames[static_cast<std::size_t>(day)];
  switch (random.below(16)) {
    case 0:
      return {cat(name, random.below(2) == 0 ? "L" : "#L"),
              [day](const Day& d) { return d.weekday == day && d.day + 7 > d.length; }};
    case 1:
      return {cat(name, "#", nth), [day, nth](const Day& d) {
                int count = 0;
                for (int k = 1; k <= d.day; ++k) count += weekday_of(d, k) == day ? 1 : 0;
                return d.weekday == day && count == nth;
              }};
    case 2:
      if (day != 0) {
        return {cat(name, "-7"),
                [day](const Day& d) { return d.weekday >= day || d.weekday == 0; }};
      }
      return {"7", [](const Day& d) { return d.weekday == 0; }};
    case 3: return {name, [day](const Day& d) { return d.weekday == day; }};
    case 4:
    case 5:
    case 6:
    case 7:
    case 8: return {"?", [](const Day&) { return true; }};
    default: break;
  }
  const MadeField field = make_field(random, kWeekday);
  return {field.text,
          [field](const Day& d) { return field.set[static_cast<std::size_t>(d.weekday)]; }};
}

}  // namespace

std::vector<std::size_t> Timeline::jumps() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 1; i < shown.size(); ++i) {
    if (shown[i] != shown[i - 1] + grain) out.push_back(i);
  }
  return out;
}

Timeline watch_clock(const std::string& zone, std::int64_t start, std::int64_t end,
                     std::int64_t grain) {
  ::setenv("TZ", cat(":", zone).c_str(), 1);
  ::tzset();
  Timeline out{start, grain, {}};
  out.shown.reserve(static_cast<std::size_t>((end - start) / grain));
  // A quarter of an hour with one offset at both ends has no change within; any other is asked
  // tick by tick.
  constexpr std::int64_t kQuarter = 900;
  for (std::int64_t t = start; t < end; t += kQuarter) {
    const std::int64_t first = offset_at(t);
    const bool even = first == offset_at(t + kQuarter);
    for (std::int64_t tick = t; tick < std::min(end, t + kQuarter); tick += grain) {
      out.shown.push_back(tick + (even ? first : offset_at(tick)));
    }
  }
  ::unsetenv("TZ");
  ::tzset();
  return out;
}

Day day_of(std::int64_t day_number) {
  const auto civil = [](std::int64_t number) {
    const std::time_t t = number * kDay;
    std::tm out{};
    ::gmtime_r(&t, &out);
    return out;
  };
  const std::tm today = civil(day_number);
  Day out{today.tm_mon + 1, today.tm_mday, today.tm_wday, today.tm_mday};
  while (civil(day_number + out.length - out.day + 1).tm_mon == today.tm_mon) ++out.length;
  return out;
}

MadeExpression make_expression(Random& random, std::int64_t grain, int favoured) {
  MadeExpression out;
  out.ticks.assign(static_cast<std::size_t>(kDay / grain), false);
  const MadeField minute = make_field(random, kSixty);
  MadeField hour = make_field(random, kHour);
  const bool favour = random.below(2) == 0;
  if (favour) {
    hour = {cat(favoured), std::vector<bool>(64, false), false};
    hour.set[static_cast<std::size_t>(favoured)] = true;
  }
  const MadeField second = make_field(random, kSixty);
  const bool with_seconds = grain == 1;
  for (std::size_t tick = 0; tick < out.ticks.size(); ++tick) {
    const std::size_t time = tick * static_cast<std::size_t>(grain);
    out.ticks[tick] = hour.set[time / 3600] && minute.set[time / 60 % 60] &&
                      (!with_seconds || second.set[time % 60]);
  }
  out.interval = minute.interval || hour.interval || (with_seconds && second.interval);
  MadeField month = make_field(random, kMonth);
  if (random.below(2) == 0) month = {"*", std::vector<bool>(64, true), true};
  if (favour) month = {"*", std::vector<bool>(64, true), true};
  const auto [days, day_suits] =
      favour ? std::pair<std::string, Suits>("?", [](const Day&) { return true; })
             : make_month_days(random);
  const auto [weekdays, weekday_suits] = make_weekdays(random);
  const bool both = !is_star(days) && !is_star(weekdays);
  out.suits = [month, both, by_day = day_suits, by_weekday = weekday_suits](const Day& d) {
    if (!month.set[static_cast<std::size_t>(d.month)]) return false;
    return both ? by_day(d) || by_weekday(d) : by_day(d) && by_weekday(d);
  };
  out.text = cat(with_seconds ? second.text + " " : "", minute.text, " ", hour.text, " ", days, " ",
                 month.text, " ", weekdays);
  return out;
}

std::vector<Firing> walk(const MadeExpression& expression, const Timeline& timeline) {
  const std::int64_t grain = timeline.grain;
  const std::int64_t first_day = floor_div(timeline.shown.front(), kDay) - 1;
  const std::int64_t last_day = floor_div(timeline.shown.back(), kDay) + 1;
  std::vector<bool> day_suits;
  for (std::int64_t d = first_day; d <= last_day; ++d) {
    day_suits.push_back(expression.suits(day_of(d)));
  }
  const auto matches = [&](std::int64_t shown) {
    const std::int64_t day = floor_div(shown, kDay);
    return day_suits[static_cast<std::size_t>(day - first_day)] &&
           expression.ticks[static_cast<std::size_t>((shown - day * kDay) / grain)];
  };
  std::vector<Firing> out;
  std::int64_t highest = timeline.shown.front() - 1;
  for (std::size_t i = 0; i < timeline.shown.size(); ++i) {
    const std::int64_t shown = timeline.shown[i];
    const std::int64_t instant = timeline.start + grain * static_cast<std::int64_t>(i);
    if (matches(shown) && (expression.interval || shown > highest)) {
      out.push_back({instant, shown});
    } else if (i > 0) {
      for (std::int64_t skipped = timeline.shown[i - 1] + grain; skipped < shown;
           skipped += grain) {
        if (!matches(skipped)) continue;
        out.push_back({instant, skipped});
        break;
      }
    }
    highest = std::max(highest, shown);
  }
  return out;
}

}  // namespace stint::test
