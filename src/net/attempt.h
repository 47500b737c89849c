// What every store that is asked over HTTP needs: how much time is left, whether a request may be
// carried out twice, and what it means when no answer came.
//
// The rule: a request that must not be carried out twice and may have arrived is
// Code::UnknownOutcome, always. Anything else that failed is Code::Unavailable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "net/http_client.h"

namespace stint::net {

// What is left of the time that a call may take.
class Deadline {
 public:
  Deadline(const Clock& clock, Millis time) : clock_(clock), at_(clock.mono() + time) {}
  Millis left() const;
  bool passed() const { return left().count() <= 0; }
  // The nearer of this one and the time from now.
  Deadline within(Millis time) const;

 private:
  const Clock& clock_;
  MonoTime at_;
};

enum class Twice { Harmless, Never };

// The code of a failed request that may have arrived, and may have been carried out.
Code code_if_arrived(Twice twice);
// The code of a request without an answer.
Code code_of(const HttpFailure& failure, Twice twice);
// Whether a request without an answer may be sent again, also to another server.
bool may_repeat(const HttpFailure& failure, Twice twice);

// A server's own words, fit to be shown: one line, short, without the secrets.
std::string scrubbed(std::string_view text, const std::vector<std::string>& secrets);

}  // namespace stint::net
