// One item without a store: core/item.h's record, and timers on a clock that the test moves.
#pragma once

#include "core/item.h"
#include "tests/conformance/model_timers.h"

namespace stint::testing {

class ItemModel : public ModelTimers {
 public:
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
