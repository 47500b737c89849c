#include "cli/exit_codes.h"

namespace stint::cli {

Exit exit_code(Code code) {
  switch (code) {
    case Code::Held: return kHeld;
    case Code::Lost: return kLost;
    case Code::Stale:
    case Code::Used:
    case Code::NeverIssued:
    case Code::NeverGranted:
    case Code::Foreign:
    case Code::NoToken: return kRefused;
    case Code::UnknownOutcome: return kUnknown;
    case Code::Unavailable: return kUnavailable;
    case Code::Invalid: return kUsage;
    case Code::Denied: return kDenied;
    case Code::Failed: return kFailed;
  }
  return kFailed;
}

}  // namespace stint::cli
