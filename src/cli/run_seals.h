// What `run --seal` does between the grant and the start of the command.
#pragma once

#include "app/opened.h"
#include "cli/session.h"
#include "guard/targets.h"
#include "holder/run.h"

namespace stint::cli {

// `texts` (--seal), and the configuration's [seal] of the first resource; checked before anything
// is acquired.
Result<std::vector<guard::Target>> seal_targets(Session& session, const holder::RunRequest& request,
                                                std::vector<std::string> texts);

// One step remembers the targets, then one seals each: those given, and those that earlier holders
// of each lease have sealed (not with --no-seal). None: no steps, and nothing was read for it.
Result<std::vector<holder::SealStep>> seal_steps(Session& session, app::Opened& opened,
                                                 const holder::RunRequest& request,
                                                 const std::vector<guard::Target>& targets,
                                                 const holder::Taken& taken);

}  // namespace stint::cli
