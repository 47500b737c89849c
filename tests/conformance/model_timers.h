// Timers without a store, on a clock that the test moves.
#pragma once

#include <algorithm>
#include <optional>

#include "core/lease.h"

namespace stint::testing {

class ModelTimers {
 public:
  Millis now{1'000'000};

 protected:
  struct Kept {
    std::optional<Millis> fires_at;
    Millis ttl{0};
  };

  Timer show(const Kept& kept) const {
    if (!kept.fires_at) return {};
    const Millis left = *kept.fires_at - now;
    return {left.count() > 0 ? TimerState::Running : TimerState::Fired, left, kept.ttl};
  }

  void run(Kept& kept, const core::TimerPlan& plan) const {
    switch (plan.op) {
      case core::TimerPlan::Op::Keep: return;
      case core::TimerPlan::Op::Stop: kept = {}; return;
      case core::TimerPlan::Op::Start: kept = {now + plan.length, plan.length}; return;
      case core::TimerPlan::Op::Extend:
        kept = {std::max(kept.fires_at.value_or(now), now + plan.length), plan.length};
        return;
    }
  }
};

}  // namespace stint::testing
