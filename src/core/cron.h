// Cron expressions: what they say, and when they fire. Pure: the zone is handed in as a value.
//
// Five fields, or six with seconds first; the dialect is in docs/guides/cron-expressions.md. The
// parser is cron_parse.cc, the calendar cron.cc, daylight saving cron_slots.cc.
//
// The rules of daylight saving, in one place:
//   gap      nominal times that the clock jumps over run once, at the first instant after the jump;
//            if that instant is a nominal time itself, it is that one run
//   overlap  an expression with `*`, `/` or `-` in seconds, minutes or hours runs in both passes,
//            a fixed one only when the clock shows its time first
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/zone.h"

namespace stint::core {

// Sets are bits: bit 5 of `minutes` is minute 5.
struct CronExpression {
  std::uint64_t seconds = 0;
  std::uint64_t minutes = 0;
  std::uint64_t hours = 0;
  std::uint64_t months = 0;  // bits 1 to 12

  // Day of month: a set, or counted back from the end.
  std::uint64_t days = 0;             // bits 1 to 31
  std::optional<unsigned> from_last;  // L: 0, L-3: 3; then `days` is empty
  bool nearest_weekday = false;       // 15W, LW: the one day moves to Monday..Friday

  // Day of week: a set, or one of its days in the month.
  std::uint64_t weekdays = 0;           // bits 0 (Sunday) to 6
  std::optional<unsigned> nth_of_week;  // 5#3: 3
  bool last_of_week = false;            // 5L, 5#L

  bool any_day = false;      // the field was * or ?
  bool any_weekday = false;  // ... and if neither was, a day that suits one of them counts
  bool interval = false;     // runs in both passes of an overlap

  std::chrono::seconds every{0};  // @every: the fields above do not count
  std::string zone;               // CRON_TZ=, TZ=; empty: none was named
};

// Code::Invalid names the field and what is wrong with it.
Result<CronExpression> parse_cron(std::string_view text);

// False: no date ever suits it (30 February).
bool ever_fires(const CronExpression& expression);

// One time at which it fires.
struct CronTime {
  std::chrono::sys_seconds instant;
  std::chrono::seconds offset{0};      // of the zone at that instant
  std::chrono::local_seconds nominal;  // what the expression says; differs from the clock's time
                                       // only after a gap

  bool operator==(const CronTime&) const = default;
};

enum class Bound { Exclusive, Inclusive };

// The first time after (or at) `from`, the last before (or at) it. Empty: none within the years
// 1 to 9999 of the zone's clock.
std::optional<CronTime> next_time(const CronExpression& expression, const Zone& zone,
                                  std::chrono::sys_seconds from, Bound bound);
std::optional<CronTime> previous_time(const CronExpression& expression, const Zone& zone,
                                      std::chrono::sys_seconds from, Bound bound);

// The calendar alone, without zone: the first nominal time not before `from`, the last not after
// it. Not for @every, which has none.
std::optional<std::chrono::local_seconds> nominal_from(const CronExpression& expression,
                                                       std::chrono::local_seconds from);
std::optional<std::chrono::local_seconds> nominal_until(const CronExpression& expression,
                                                        std::chrono::local_seconds until);

}  // namespace stint::core
