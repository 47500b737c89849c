// The slow truth about cron expressions: a walk over every tick of a clock.
//
// It shares nothing with core/cron: the zone's clock is the C library's, expressions are made with
// their meaning beside them (a table of ticks of the day, a test of days), never parsed, and the
// walk looks at each minute or second in turn.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"

namespace stint::test {

// What the clock of a zone shows at each tick: Unix time in, seconds of the civil calendar out.
struct Timeline {
  std::int64_t start = 0;
  std::int64_t grain = 60;  // seconds a tick
  std::vector<std::int64_t> shown;

  std::int64_t end() const { return start + grain * static_cast<std::int64_t>(shown.size()); }
  // Ticks at which the clock did not simply go on.
  std::vector<std::size_t> jumps() const;
  // The hour that is left out or comes twice at a jump.
  int hour_of(std::size_t jump) const {
    const std::int64_t first = std::min(shown[jump], shown[jump - 1] + grain);
    return static_cast<int>((first % 86'400 + 86'400) % 86'400 / 3600);
  }
};
// REQUIRES: nobody else uses the C library's time zone meanwhile.
Timeline watch_clock(const std::string& zone, std::int64_t start, std::int64_t end,
                     std::int64_t grain);

// A day of the calendar and the month around it.
struct Day {
  int month = 1;
  int day = 1;
  int weekday = 0;
  int length = 31;  // of the month
};
Day day_of(std::int64_t day_number);  // since 1970-01-01

struct MadeExpression {
  std::string text;
  bool interval = false;
  std::vector<bool> ticks;  // of a day
  std::function<bool(const Day&)> suits;
};
// `hour`: named by half of the expressions, on many days, so that they meet the clock's jumps.
MadeExpression make_expression(Random& random, std::int64_t grain, int hour);

struct Firing {
  std::int64_t instant = 0;
  std::int64_t nominal = 0;
  bool operator==(const Firing&) const = default;
};
std::vector<Firing> walk(const MadeExpression& expression, const Timeline& timeline);

}  // namespace stint::test
