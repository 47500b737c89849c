// What is told to people of a job's slots: the recorded ones one by one, and what a schedule would
// do after an outage.
#pragma once

#include <vector>

#include "api/slots.h"
#include "schedule/config.h"

namespace stint::schedule {

// The newest `limit` slots, oldest first; ranges of dropped ones slot by slot.
Result<std::vector<api::SlotView>> list_slots(const std::string& job,
                                              const api::JobHistory& history, std::size_t limit,
                                              const FindZone& find_zone);

using api::Foretold;
using api::Outage;
// "23:00..07:12" on the job's own clock: the next such stretch after `now`; or two times of RFC
// 3339.
Result<Outage> parse_outage(std::string_view text, const core::Zone& zone, WallTime now);

Foretold foretell(const core::JobRule& rule, const Outage& outage, std::size_t limit,
                  bool paused = false);

}  // namespace stint::schedule
