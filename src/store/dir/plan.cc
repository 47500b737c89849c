#include "store/dir/plan.h"

#include "base/check.h"
#include "store/append_key.h"
#include "store/dir/server_clock.h"
#include "store/steps.h"

namespace stint::store::dir {
namespace {

constexpr unsigned kVersionBits = 16;  // changes of one file

TimerState state_of(const Slot& slot, Nanos now) {
  return slot && slot->timer ? slot->timer->state(now) : TimerState::None;
}

}  // namespace

Plan::Plan(const State& state, Number number, Nanos now)
    : state_(state), number_(number), now_(now) {}

Result<Slot> Plan::look(const std::string& key) const {
  const auto found = pending_.find(key);
  if (found != pending_.end()) return found->second;
  return state_.look(key);
}

bool Plan::holds(const Step& step, const Slot& slot) {
  if (!finds_expected(step, slot ? slot->version : 0)) return false;
  return !step.demand || *step.demand == state_of(slot, now_);
}

Version Plan::next_version() {
  CHECK(changes_.size() < (1U << kVersionBits) - 1, "too many changes in one file");
  return number_ << kVersionBits | (changes_.size() + 1);
}

void Plan::change(const std::string& key, Slot slot, bool was_appended) {
  pending_.insert_or_assign(key, slot);
  changes_.push_back({key, std::move(slot), was_appended});
}

std::optional<StoredTimer> Plan::timer(const Step& step, const Slot& slot) const {
  const std::optional<StoredTimer> before = slot ? slot->timer : std::nullopt;
  const Nanos now = before ? before->now(now_) : now_;
  const StoredTimer started{now, now + step.ttl + grain_of(now_), step.ttl};
  switch (step.timer) {
    case Step::TimerOp::Keep: return before;
    case Step::TimerOp::Stop: return std::nullopt;
    case Step::TimerOp::Start: return started;
    case Step::TimerOp::Extend:
      return before && before->fires_at > started.fires_at ? before : started;
  }
  return before;
}

Version Plan::apply(const Step& step, const Slot& slot) {
  switch (step.kind) {
    case Step::Kind::Check: return slot ? slot->version : 0;
    case Step::Kind::Remove:
      if (slot) change(step.key, std::nullopt, slot->appended);
      return 0;
    case Step::Kind::Append: {
      const Version version = next_version();
      change(append_key(step.key, version), Record{step.value, version, true, std::nullopt}, false);
      return 0;
    }
    case Step::Kind::Set:
    case Step::Kind::Touch: break;
  }
  Record record = slot.value_or(Record{});
  record.timer = timer(step, slot);
  if (step.kind == Step::Kind::Set) {
    record.value = step.value;
    record.version = next_version();
  }
  const Version version = record.version;
  change(step.key, std::move(record), false);
  return version;
}

Result<CommitAnswer> Plan::add(const std::vector<Step>& steps) {
  std::vector<Slot> slots;
  std::optional<Nanos> limit;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind == Step::Kind::Append) {
      slots.emplace_back();
      continue;
    }
    auto slot = look(steps[i].key);
    if (!slot) return slot.error();
    if (!holds(steps[i], *slot)) return CommitAnswer(Conflict{i});
    if (steps[i].demand == TimerState::Running) {
      limit = std::min(limit.value_or(Nanos::max()), (*slot)->timer->fires_at);
    }
    slots.push_back(std::move(*slot));
  }
  Committed done;
  const std::size_t before = changes_.size();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    done.versions.push_back(apply(steps[i], slots[i]));
    done.granted_ttl.push_back(steps[i].ttl);
  }
  if (limit && changes_.size() > before) {
    valid_before_ = std::min(valid_before_.value_or(Nanos::max()), *limit);
  }
  done.revision = changes_.size() > before ? number_ : number_ - 1;
  done.store_time = now_;
  done.store_wall = WallTime(std::chrono::duration_cast<Millis>(now_));
  return CommitAnswer(std::move(done));
}

Entry entry_of(std::string key, const Slot& slot, Nanos now) {
  Entry out;
  out.key = std::move(key);
  if (!slot) return out;
  out.value = slot->value;
  out.version = slot->version;
  if (slot->timer) {
    const StoredTimer& timer = *slot->timer;
    out.timer.state = timer.state(now);
    // Rounded up: a timer never shows less than it has; nor more than its length.
    const Nanos left = timer.fires_at - timer.now(now);
    out.timer.remaining = std::min(std::chrono::ceil<Millis>(left), timer.ttl);
    out.timer.ttl = timer.ttl;
  }
  return out;
}

}  // namespace stint::store::dir
