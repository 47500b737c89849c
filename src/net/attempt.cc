#include "net/attempt.h"

#include <algorithm>

#include "base/text.h"

namespace stint::net {
namespace {

constexpr std::size_t kLongestText = 200;

}  // namespace

Millis Deadline::left() const { return std::chrono::duration_cast<Millis>(at_ - clock_.mono()); }

Deadline Deadline::within(Millis time) const {
  return Deadline(clock_, std::max(Millis(0), std::min(left(), time)));
}

Code code_if_arrived(Twice twice) {
  return twice == Twice::Never ? Code::UnknownOutcome : Code::Unavailable;
}

Code code_of(const HttpFailure& failure, Twice twice) {
  const bool arrived = failure.kind == HttpFailure::Kind::MaybeSent;
  return arrived ? code_if_arrived(twice) : Code::Unavailable;
}

bool may_repeat(const HttpFailure& failure, Twice twice) {
  return failure.kind == HttpFailure::Kind::NotSent || twice == Twice::Harmless;
}

std::string scrubbed(std::string_view text, const std::vector<std::string>& secrets) {
  std::string out(text.substr(0, kLongestText * 4));
  for (const std::string& secret : secrets) {
    if (secret.empty()) continue;
    for (std::size_t at = out.find(secret); at != out.npos; at = out.find(secret, at + 3)) {
      out.replace(at, secret.size(), "***");
    }
  }
  return printable(trim(out.substr(0, kLongestText)));
}

}  // namespace stint::net
