// What the files of cron.h share: a set of small numbers is a word of bits; days are counted.
#pragma once

#include "core/cron.h"

namespace stint::core {

constexpr std::uint64_t bit(unsigned n) { return std::uint64_t{1} << n; }

// Of the days in [from, to), those that suit the expression; outside the years 1 to 9999 none does.
std::uint64_t suitable_days(const CronExpression& expression, std::chrono::local_days from,
                            std::chrono::local_days to);

}  // namespace stint::core
