// From what is on record of a resource to what tune() reads, and from its report to JSON: the
// command line and the server say the same.
#pragma once

#include <string>
#include <vector>

#include "api/events.h"
#include "api/json.h"
#include "api/lease.h"
#include "report/tune.h"

namespace stint::report {

// The grants that have ended.
void add_grants(const std::vector<api::PastGrant>& grants, TuneInput& input);
// What `run` measured: how near a renewal came to the deadline, and how often the machine slept.
Status add_measures(api::Events& events, const std::string& resource, std::size_t limit,
                    TuneInput& input);
std::vector<api::JsonField> tune_fields(const std::string& name, const TuneInput& input,
                                        const TuneReport& report);

}  // namespace stint::report
