#include "core/zone.h"

#include <algorithm>
#include <array>

namespace stint::core {
namespace {

using std::chrono::days;
using std::chrono::local_seconds;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

// Further away than any date that is asked for, and far from overflow.
constexpr sys_seconds kBeginning{seconds(-(std::int64_t{1} << 50U))};
constexpr sys_seconds kEnd{seconds(std::int64_t{1} << 50U)};

sys_days date_of(const ZoneRuleDate& date, std::chrono::year year) {
  const std::chrono::sys_days first(year / 1 / 1);
  switch (date.kind) {
    case ZoneRuleDate::Kind::DayOfYear: return first + days(date.day);
    case ZoneRuleDate::Kind::DayWithoutLeap: {
      constexpr unsigned kFirstOfMarch = 60;
      const bool skips = year.is_leap() && date.day >= kFirstOfMarch;
      return first + days(date.day - 1 + (skips ? 1 : 0));
    }
    case ZoneRuleDate::Kind::MonthWeekDay: break;
  }
  const std::chrono::weekday weekday(date.weekday);
  const auto month = year / std::chrono::month(date.month);
  constexpr unsigned kLastWeek = 5;
  return date.week == kLastWeek ? sys_days(month / weekday[std::chrono::last])
                                : sys_days(month / weekday[date.week]);
}

// The two changes of three years around `t`, in order of time, behind what the table ends with.
struct RuleChanges {
  std::array<ZoneChange, 7> changes;
  std::size_t count = 0;

  RuleChanges(const ZoneRule& rule, const ZoneSpan& before, sys_seconds t) {
    const auto& summer = *rule.summer;
    std::array<ZoneChange, 6> made;
    const std::chrono::year_month_day today{std::chrono::floor<days>(t)};
    std::size_t n = 0;
    for (int step = -1; step <= 1; ++step) {
      const auto year = today.year() + std::chrono::years(step);
      made[n++] = {date_of(summer.starts, year) + summer.starts.time - rule.standard,
                   summer.offset};
      made[n++] = {date_of(summer.ends, year) + summer.ends.time - summer.offset, rule.standard};
    }
    std::stable_sort(made.begin(), made.end(),
                     [](const ZoneChange& a, const ZoneChange& b) { return a.at < b.at; });
    changes[count++] = {before.begin, before.offset};
    for (const ZoneChange& change : made) {
      if (change.at <= before.begin) continue;
      // Summer time all the year is written as a winter of no length: the later word counts.
      if (count > 1 && changes[count - 1].at == change.at) --count;
      if (changes[count - 1].offset != change.offset) changes[count++] = change;
    }
  }
};

}  // namespace

Zone::Zone(seconds first_offset, const std::vector<ZoneChange>& changes,
           std::optional<ZoneRule> afterwards)
    : rule_(afterwards) {
  table_.push_back({kBeginning, kEnd, first_offset, {}});
  table_.back().reached = table_.back().local(kBeginning);
  for (const ZoneChange& change : changes) {
    ZoneSpan& last = table_.back();
    if (change.at <= kBeginning) {
      last.offset = change.offset;
      last.reached = last.local(kBeginning);
    } else if (change.offset != last.offset) {
      last.end = change.at;
      // Two changes within hours of each other: what was shown before both still counts.
      const local_seconds reached = std::max(last.reached, last.local(change.at));
      table_.push_back({change.at, kEnd, change.offset, reached});
    }
  }
}

ZoneSpan Zone::at(sys_seconds t) const {
  const ZoneSpan& last = table_.back();
  if (t >= last.begin && rule_) return by_rule(t);
  const auto after = std::upper_bound(table_.begin(), table_.end(), t,
                                      [](sys_seconds x, const ZoneSpan& s) { return x < s.begin; });
  return after == table_.begin() ? table_.front() : *(after - 1);
}

ZoneSpan Zone::by_rule(sys_seconds t) const {
  const ZoneSpan& last = table_.back();
  if (!rule_->summer) {
    // The table's last offset and the rule's are the same wherever the file is sound; the table's
    // counts, as its change has a date.
    return last;
  }
  const RuleChanges made(*rule_, last, t);
  std::size_t i = made.count - 1;
  while (i > 0 && made.changes[i].at > t) --i;
  ZoneSpan span = last;
  if (i > 0) {
    span.begin = made.changes[i].at;
    span.offset = made.changes[i].offset;
    span.reached = local_seconds(span.begin.time_since_epoch() + made.changes[i - 1].offset);
  }
  if (i + 1 < made.count) {
    span.end = made.changes[i + 1].at;
  } else {
    // No change within the years looked at: ask again later.
    constexpr days kSoon(200);
    span.end = t + kSoon;
  }
  return span;
}

}  // namespace stint::core
