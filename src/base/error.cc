#include "base/error.h"

namespace stint {

std::string_view word(Code code) {
  switch (code) {
    case Code::Held: return "held";
    case Code::Lost: return "lost";
    case Code::Stale: return "stale";
    case Code::Used: return "used";
    case Code::NeverIssued: return "never_issued";
    case Code::NeverGranted: return "never_granted";
    case Code::Foreign: return "foreign";
    case Code::NoToken: return "no_token";
    case Code::UnknownOutcome: return "unknown_outcome";
    case Code::Unavailable: return "unavailable";
    case Code::Invalid: return "invalid";
    case Code::Denied: return "denied";
    case Code::Failed: return "failed";
  }
  return "failed";
}

Error Error::during(std::string_view what) && {
  message = "while " + std::string(what) + ": " + message;
  return std::move(*this);
}

}  // namespace stint
