// One lease without a store: core/lease.h's record, and timers on a clock that the test moves.
//
// The reference that stores are compared with, and the playground of the property tests.
#pragma once

#include <algorithm>
#include <optional>

#include "core/lease.h"
#include "tests/conformance/model_timers.h"

namespace stint::testing {

class LeaseModel : public ModelTimers {
 public:
  Token floor;

  core::Record record() const {
    core::Record out = record_;
    out.timers = {show(alive_), show(cap_), show(rest_), show(cool_)};
    return out;
  }

  core::Decision play(const core::Verb& verb) {
    const core::Decision decision =
        core::decide(record(), verb, {.floor = floor, .now_wall = WallTime(now)});
    apply(decision.change);
    return decision;
  }

  // What raising the floor and dropping the record does.
  void forget() {
    if (record_.own) floor = std::max(floor, record_.own->token);
    record_ = {};
    alive_ = cap_ = rest_ = cool_ = {};
  }

 private:
  void apply(const core::Change& change) {
    if (change.own) record_.own = change.own;
    if (change.pulse) record_.pulse = *change.pulse;
    if (change.work) record_.work = *change.work;
    run(alive_, change.alive);
    run(cap_, change.cap);
    run(rest_, change.rest);
    run(cool_, change.cool);
  }

  core::Record record_;
  Kept alive_;
  Kept cap_;
  Kept rest_;
  Kept cool_;
};

}  // namespace stint::testing
