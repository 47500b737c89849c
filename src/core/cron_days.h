// The days of a cron expression, counted. For cron_count.cc.
#pragma once

#include "core/cron.h"

namespace stint::core {

// Of the days in [from, to), those that suit the expression; outside the years 1 to 9999 none does.
std::uint64_t suitable_days(const CronExpression& expression, std::chrono::local_days from,
                            std::chrono::local_days to);

}  // namespace stint::core
