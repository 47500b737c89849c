// What the guards' commands share: the pass of this session, and how a refusal is told.
#pragma once

#include <array>

#include "cli/command.h"
#include "cli/session.h"
#include "guard/guard.h"

namespace stint::cli {

constexpr Option kResourceOption = {"--resource", "R",
                                    "the lease that guards it (inside a run: known)"};
constexpr Option kTokenOption = {"--token", "N", "its token (inside a run: known)"};
constexpr Option kModeOption = {
    "--mode", "M", "at-least (default): as many writes as wanted; once: one per grant"};
constexpr Option kKeyOption = {"--key", "K",
                               "with --mode once: what makes a repeat the same write (default: "
                               "its content)"};
constexpr Option kLiveOption = {"--require-live", "",
                                "also refuse if the lease has run out, though nobody took over"};

// From the command's own words (all of the options above that it has) and the environment. Opens
// the store only where the environment does not know enough.
// KeyOf::Act: --key is not the pass's.
enum class KeyOf { Write, Act };
Result<guard::Pass> pass_of(Session& session, KeyOf key = KeyOf::Write);

// Writes the refusal into the ledger and tells it on stderr; 13.
int refused(Session& session, const guard::Refused& refusal, const guard::Pass& pass);
// The same for one that was let through (Pass::warn).
void warned(Session& session, const guard::Refused& refusal, const guard::Pass& pass);

}  // namespace stint::cli
