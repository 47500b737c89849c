// The checker, under the names that the tests use.
#pragma once

#include "probe/history_checker.h"
#include "probe/recorded_leases.h"
#include "tests/support/history.h"

namespace stint::test {

using probe::check_history;
using probe::CheckOptions;
using probe::HistoryReport;
using probe::Invariant;
using probe::invariants;
using probe::Operation;
using probe::parse_line;
using probe::RecordedLeases;
using probe::report;
using probe::Timeline;
using probe::to_line;
using probe::Violation;
using probe::Violations;

}  // namespace stint::test
