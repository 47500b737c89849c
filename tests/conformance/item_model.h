// One item without a store: core/item.h's record, and timers on a clock that the test moves.
#pragma once

#include <algorithm>
#include <optional>

#include "core/item.h"

namespace stint::testing {

class ItemModel {
 public:
  Millis now{1'000'000};
  Token floor;
  bool dropped = false;

  explicit ItemModel(const core::ItemLimits& limits) { item_.limits = limits; }

  core::ItemRecord record() const {
    return {.item = item_, .timers = {show(alive_), show(pace_), show(delay_)}};
  }

  core::ItemDecision play(const core::ItemVerb& verb) {
    const core::ItemDecision decision =
        core::decide(record(), verb, {.floor = floor, .now_wall = WallTime(now)});
    if (decision.change) apply(*decision.change);
    return decision;
  }

 private:
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

  void apply(const core::ItemChange& change) {
    item_ = change.item;
    dropped = change.dropped;
    run(alive_, change.alive);
    run(pace_, change.pace);
    delay_ = {};
    if (item_.state == core::ItemState::Waiting && change.delay.count() > 0) {
      delay_ = {now + change.delay, change.delay};
    }
  }

  core::Item item_;
  Kept alive_;
  Kept pace_;
  Kept delay_;
};

}  // namespace stint::testing
