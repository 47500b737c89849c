// What became of targets that were to be sealed, told to people and to programs.
#pragma once

#include <string>
#include <vector>

#include "app/guards.h"
#include "cli/session.h"

namespace stint::cli {

using SealReports = std::vector<app::SealReport>;

// The lease's JSON with `sealed` and `not_reached`, if there were any targets.
std::string with_seals(std::string lease, const SealReports& reports);

// Says each target. After an order: 1 if one was not reached, else 0.
int tell_seals(const Session& session, const SealReports& reports);

}  // namespace stint::cli
