// A timer: the only notion of time that every store has. Started by a commit, judged by the store.
#pragma once

#include <optional>

#include "base/time.h"

namespace stint {

enum class TimerState {
  None,     // there is no timer
  Running,  // it has not fired
  Fired,    // it has; a timer never fires early
};

struct Timer {
  TimerState state = TimerState::None;
  // How long it still has (zero or less: how long ago it fired). Empty where the store cannot tell;
  // where it tells in whole seconds, zero may still be Running: `state` decides.
  std::optional<Millis> remaining;
  // The length that its end came from: it was started or extended with. An extension that did not
  // move the end does not change it. Empty where the store cannot tell.
  std::optional<Millis> ttl;
};

inline bool running(const Timer& timer) { return timer.state == TimerState::Running; }
inline bool fired(const Timer& timer) { return timer.state == TimerState::Fired; }

}  // namespace stint
