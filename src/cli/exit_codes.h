// The exit codes of the outer contract: `help exit-codes` and the manual are made from this table.
#pragma once

#include <array>
#include <string_view>

#include "base/error.h"

namespace stint::cli {

enum Exit : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kNothing = 3,
  kHeld = 11,
  kLost = 12,
  kRefused = 13,
  kUnknown = 14,
  kUnavailable = 69,
  kWorkStopped = 75,
  kDenied = 77,
  kNotExecutable = 126,
  kNotFound = 127,
  kSignalled = 128,  // plus the signal's number
};

struct ExitMeaning {
  std::string_view code;
  std::string_view meaning;
};
constexpr std::array<ExitMeaning, 13> kExitMeanings = {{
    {"0", "done; also: run was waved off because another holds it (--held-exit N changes that)"},
    {"1", "failed"},
    {"2", "wrong usage"},
    {"3", "nothing there"},
    {"11", "held by another"},
    {"12", "lost: not, or no longer, the holder"},
    {"13", "refused by a guard"},
    {"14", "outcome unknown: it may or may not have happened"},
    {"69", "store or target unreachable or unusable"},
    {"75", "run: the lease was lost while the work ran; the work was stopped"},
    {"77", "denied"},
    {"126, 127", "run: the command could not be executed, or was not found"},
    {"128+N", "run: the command was ended by signal N; otherwise its own code is passed on"},
}};

Exit exit_code(Code code);

}  // namespace stint::cli
