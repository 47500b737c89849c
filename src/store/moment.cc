#include "store/moment.h"

#include <algorithm>

#include "store/steps.h"

namespace stint::store {

TimerState Moment::state(const std::optional<StoredTimer>& timer) const {
  if (!timer) return TimerState::None;
  return now_ < fires_now(*timer, boots_) ? TimerState::Running : TimerState::Fired;
}

Entry Moment::entry(std::string key, Row row) const {
  Entry out{
      .key = std::move(key), .value = std::move(row.value), .version = row.version, .timer = {}};
  if (row.timer) {
    const auto left = std::chrono::ceil<Millis>(fires_now(*row.timer, boots_) - now_);
    out.timer = {.state = state(row.timer),
                 .remaining = std::min(left, row.timer->ttl),
                 .ttl = row.timer->ttl};
  }
  return out;
}

std::optional<StoredTimer> Moment::planned(const Step& step, const Row& row) const {
  const Nanos full = now_ + step.ttl;
  const std::size_t boot = boots_.size() - 1;
  switch (step.timer) {
    case Step::TimerOp::Keep: return row.timer;
    case Step::TimerOp::Stop: return std::nullopt;
    case Step::TimerOp::Start: return StoredTimer{boot, full, step.ttl};
    case Step::TimerOp::Extend: {
      // An end that is later stays, with the length that it came from: a reboot gives that again.
      if (row.timer && fires_now(*row.timer, boots_) > full) return row.timer;
      return StoredTimer{boot, full, step.ttl};
    }
  }
  return row.timer;
}

bool Moment::holds(const Step& step, const Row& row) const {
  if (!finds_expected(step, row.version)) return false;
  return !step.demand || *step.demand == state(row.timer);
}

bool blind(const Step& step) {
  if (step.expect != Expect::Any || step.demand) return false;
  switch (step.kind) {
    case Step::Kind::Append:
    case Step::Kind::Remove: return true;
    case Step::Kind::Check:
    case Step::Kind::Touch: return false;
    case Step::Kind::Set:
      return step.timer == Step::TimerOp::Start || step.timer == Step::TimerOp::Stop;
  }
  return false;
}

}  // namespace stint::store
