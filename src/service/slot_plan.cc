#include "service/slot_plan.h"

namespace stint::service {

using store::Step;

void SlotService::LeaseLook::expect(std::vector<Step>& steps) const {
  Step owner;
  owner.key = own_key(resource);
  owner.expect = own == 0 ? store::Expect::Absent : store::Expect::Seen;
  owner.version = own;
  Step pulse;
  pulse.key = alive_key(resource);
  pulse.expect = alive == 0 ? store::Expect::Absent : store::Expect::Seen;
  pulse.version = alive;
  if (record.timers.alive.state != TimerState::None) pulse.demand = record.timers.alive.state;
  // max_hold may end it between the look and the commit, too.
  Step longest;
  longest.key = cap_key(resource);
  longest.expect = cap == 0 ? store::Expect::Absent : store::Expect::Seen;
  longest.version = cap;
  if (record.timers.cap.state != TimerState::None) longest.demand = record.timers.cap.state;
  steps.push_back(std::move(owner));
  steps.push_back(std::move(pulse));
  steps.push_back(std::move(longest));
}

Step set_record(std::string key, std::string value, store::Version seen) {
  Step step;
  step.kind = Step::Kind::Set;
  step.key = std::move(key);
  step.value = std::move(value);
  step.expect = seen == 0 ? store::Expect::Absent : store::Expect::Seen;
  step.version = seen;
  return step;
}

api::Event slot_event(std::string_view kind, const std::string& job, WallTime now) {
  api::Event event;
  event.at = now;
  event.kind = kind;
  event.resource = job;
  event.details.emplace_back("job", job);
  return event;
}

void add_ended(std::vector<Step>& steps, const std::string& job, const core::EndedSlot& ended,
               WallTime now, bool again) {
  if (!again) {
    Step row;
    row.kind = Step::Kind::Set;
    row.key = slot_row_key(job, ended.slot.at);
    row.value = encode(ended);
    row.timer = Step::TimerOp::Stop;
    steps.push_back(std::move(row));
  }
  api::Event event = slot_event(core::word(ended.state), job, now);
  if (!ended.resource.empty()) event.resource = ended.resource;
  event.token = ended.token.number();
  event.owner = ended.owner.text();
  event.details.emplace_back("slot", core::slot_key(job, ended.slot.at));
  event.details.emplace_back("attempt", ended.slot.attempt);
  if (ended.exit_code) event.details.emplace_back("exit_code", *ended.exit_code);
  if (ended.started_at) {
    event.details.emplace_back("started_at_ms", to_ms(*ended.started_at));
  }
  if (!ended.cause.empty()) event.details.emplace_back("cause", ended.cause);
  if (again) event.details.emplace_back("again", 1);
  steps.push_back(append_event(event));
}

void add_range(std::vector<Step>& steps, const std::string& job, const api::RangeRow& row,
               WallTime now) {
  Step step;
  step.kind = Step::Kind::Set;
  step.key = skip_row_key(job, row.range.from);
  step.value = encode(row);
  step.timer = Step::TimerOp::Stop;
  steps.push_back(std::move(step));
  api::Event event = slot_event(core::word(row.range.reason), job, now);
  event.details.emplace_back("from", core::slot_key(job, row.range.from));
  event.details.emplace_back("to", core::slot_key(job, row.range.to));
  event.details.emplace_back("count", static_cast<std::int64_t>(row.range.count));
  if (!row.range.cause.empty()) event.details.emplace_back("cause", row.range.cause);
  steps.push_back(append_event(event));
}

}  // namespace stint::service
