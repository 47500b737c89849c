// Pictures for a README or a report, as whole SVG documents. What strangers wrote is escaped. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/events.h"
#include "api/lease.h"
#include "api/slots.h"

namespace stint::report {

// For text and attribute values of SVG and HTML; control characters are made visible.
std::string escaped(const std::string& text);

// One bar a holder, coloured by how it ended; below it the refusals at the same time.
// `grants` newest first, as `history` tells them; `events` of that resource.
std::string history_svg(const std::string& resource, const std::vector<api::PastGrant>& grants,
                        const std::vector<api::Event>& events, WallTime now);

// One mark a slot, coloured by its state, oldest first; the states are counted below.
std::string slots_svg(const std::string& job, const std::vector<api::SlotView>& slots);

}  // namespace stint::report
