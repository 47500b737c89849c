// How work ended is told until the store has said what it makes of it: a store that is away for a
// moment must not turn work that is done into work that is lost, or done twice.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "base/result.h"
#include "base/time.h"

namespace stint::api {

constexpr Millis kFirstRetelling{100};
constexpr Millis kLongestRetelling{5000};

struct Retelling {
  const Clock& clock;
  MonoTime until;  // somebody else may have a say from here on
  // Waits that long, or until told to stop. False: do not tell it again.
  std::function<bool(MonoTime until)> wait;
  std::function<void(const Error&)> say;  // once: why it is told again
};

template <class Answer>
struct Told {
  Result<Answer> answer;
  bool unsure = false;  // an earlier telling may have been heard, its answer was lost
};

// REQUIRES: telling it twice is as good as once.
template <class Answer>
Told<Answer> tell_until_heard(const Retelling& how, const std::function<Result<Answer>()>& tell) {
  bool unsure = false;
  Millis pause = kFirstRetelling;
  while (true) {
    Result<Answer> answer = tell();
    const bool away = !answer && (answer.error().code == Code::Unavailable ||
                                  answer.error().code == Code::UnknownOutcome);
    const MonoTime now = how.clock.mono();
    unsure = unsure || (away && answer.error().code == Code::UnknownOutcome);
    if (away && unsure) answer.error().code = Code::UnknownOutcome;
    if (!away || now >= how.until) return {std::move(answer), unsure};
    if (pause == kFirstRetelling) how.say(answer.error());
    if (!how.wait(std::min<MonoTime>(now + pause, how.until))) return {std::move(answer), unsure};
    pause = std::min(pause * 2, kLongestRetelling);
  }
}

}  // namespace stint::api
