#include "service/slot_service.h"

#include <algorithm>
#include <iterator>

#include "service/slot_plan.h"

namespace stint::service {

using store::Step;

WallTime SlotService::now_of(const store::Reading& reading) const {
  return reading.store_wall.value_or(clock_.wall());
}

Result<WallTime> SlotService::now() {
  auto reading = store_.read({std::string(kJobBell)});
  if (!reading) return reading.error();
  return now_of(*reading);
}

bool SlotService::own_clock() const {
  return store_.capabilities().clock == store::Capabilities::ClockKind::TimersOnly;
}

namespace {

constexpr std::size_t kLeaseKeys = 3;

void add_lease_keys(std::vector<std::string>& keys, const std::string& resource) {
  keys.push_back(own_key(resource));
  keys.push_back(alive_key(resource));
  keys.push_back(cap_key(resource));
}

}  // namespace

Result<SlotService::LeaseLook> SlotService::lease_in(const std::vector<store::Entry>& entries,
                                                     std::size_t at) {
  LeaseLook look;
  look.resource = entries[at].key.substr(own_key("").size());
  look.own = entries[at].version;
  look.alive = entries[at + 1].version;
  look.cap = entries[at + 2].version;
  look.record.timers.alive = entries[at + 1].timer;
  look.record.timers.cap = entries[at + 2].timer;
  if (!entries[at].present()) return look;
  auto own = decode_own(entries[at].value);
  if (!own) return own.error();
  look.record.own = std::move(*own);
  auto pulse = decode_pulse(entries[at + 1].value);
  if (!pulse) return pulse.error();
  look.record.pulse = *pulse;
  return look;
}

Result<SlotService::LeaseLook> SlotService::look_lease(const std::string& resource) {
  std::vector<std::string> keys;
  add_lease_keys(keys, resource);
  auto reading = store_.read(keys);
  if (!reading) return reading.error();
  return lease_in(reading->entries, 0);
}

// One damaged record is one job's trouble.
Result<std::vector<Result<SlotService::JobLook>>> SlotService::look_jobs(
    const std::vector<std::string>& names) {
  std::vector<std::string> keys;
  keys.reserve(names.size());
  for (const std::string& name : names) keys.push_back(job_key(name));
  auto reading = store_.read(keys);
  if (!reading) return reading.error();
  std::vector<Result<JobLook>> out;
  std::vector<std::size_t> active;
  std::vector<std::string> lease_keys;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const store::Entry& entry = reading->entries[i];
    JobLook look{.name = names[i],
                 .job = {},
                 .version = entry.version,
                 .assigned = entry.timer.state == TimerState::Running,
                 .now = now_of(*reading),
                 .lease = {}};
    if (entry.present()) {
      auto job = decode_job(entry.value);
      if (!job) {
        out.emplace_back(std::move(job.error()).during(cat("reading job ", quoted(names[i]))));
        continue;
      }
      look.job = std::move(*job);
      if (look.job->active) {
        active.push_back(i);
        add_lease_keys(lease_keys, look.job->active->resource);
      }
    }
    out.emplace_back(std::move(look));
  }
  if (active.empty()) return out;
  auto leases = store_.read(lease_keys);
  if (!leases) return leases.error();
  for (std::size_t i = 0; i < active.size(); ++i) {
    auto lease = lease_in(leases->entries, i * kLeaseKeys);
    if (lease) {
      out[active[i]]->lease = std::move(*lease);
    } else {
      out[active[i]] = lease.error();
    }
  }
  return out;
}

Result<SlotService::JobLook> SlotService::look_job(const std::string& name) {
  auto looks = look_jobs({name});
  if (!looks) return looks.error();
  return std::move(looks->front());
}

core::JobSight SlotService::sight_of(const JobLook& look, const std::string& scheduler) {
  core::JobSight sight{.now = look.now,
                       .active = core::JobSight::Lease::None,
                       .assigned = look.assigned,
                       .scheduler = scheduler};
  if (look.job && look.job->active) {
    const bool live = look.lease && look.lease->held_with(look.job->active->token);
    sight.active = live ? core::JobSight::Lease::Live : core::JobSight::Lease::Gone;
  }
  return sight;
}

std::optional<core::Cadence> SlotService::cadence_before(const JobLook& look,
                                                         const core::JobRule& rule) const {
  if (!look.job || look.job->digest == rule.digest) return std::nullopt;
  auto expression = core::parse_cron(look.job->schedule);
  if (!expression) return std::nullopt;
  const std::string name = core::zone_name(*expression, look.job->tz);
  if (name == core::zone_name(rule.expression, rule.tz)) {
    return core::Cadence{std::move(*expression), rule.zone};
  }
  if (name == "UTC") return core::Cadence{std::move(*expression), core::Zone()};
  auto zone = find_zone_ ? find_zone_(name) : invalid("no zones");
  if (!zone) return std::nullopt;
  return core::Cadence{std::move(*expression), std::move(*zone)};
}

SlotService::Plan SlotService::plan_of(const JobLook& look, const core::JobRule& rule,
                                       const core::JobDecision& decision) {
  Plan plan;
  plan.more = decision.more;
  Step record = set_record(job_key(look.name), encode(decision.after), look.version);
  if (decision.assign) {
    record.timer = Step::TimerOp::Start;
    record.ttl = kAssignment;
  }
  plan.steps.push_back(std::move(record));
  // Whether the active run lives was read apart from the record.
  if (look.lease) look.lease->expect(plan.steps);
  for (const core::EndedSlot& ended : decision.ended) {
    add_ended(plan.steps, look.name, ended, look.now, false);
  }
  for (const core::EndedSlot& ended : decision.retried) {
    add_ended(plan.steps, look.name, ended, look.now, true);
  }
  for (const core::SlotRange& range : decision.dropped) {
    add_range(plan.steps, look.name, {range, rule.schedule, rule.tz}, look.now);
  }
  if (decision.outdated) {
    add_range(plan.steps, look.name, {*decision.outdated, look.job->schedule, look.job->tz},
              look.now);
  }
  if (decision.schedule_changed) {
    api::Event event = slot_event("schedule_changed", look.name, look.now);
    event.details.emplace_back("schedule", rule.schedule);
    plan.steps.push_back(append_event(event));
  }
  return plan;
}

// Jobs that are decided together: as few round trips as the sizes of commits allow.
struct SlotService::Batch {
  const std::vector<api::DecideAsk>& asks;
  std::vector<std::optional<Result<api::Decided>>>& out;
  std::vector<std::size_t> open;  // not decided yet
  std::vector<Plan> plans;        // beside `asks`
  std::vector<api::Decided> decided;
  std::vector<api::Decided> before;  // what earlier commits for the same ask have ended
  int unknowns = 0;

  void done(std::size_t i);
};

void SlotService::Batch::done(std::size_t i) {
  api::Decided& so_far = before[i];
  std::ranges::move(decided[i].ended, std::back_inserter(so_far.ended));
  std::ranges::move(decided[i].retried, std::back_inserter(so_far.retried));
  if (plans[i].more) {
    open.push_back(i);
    return;
  }
  decided[i].ended = std::move(so_far.ended);
  decided[i].retried = std::move(so_far.retried);
  out[i] = std::move(decided[i]);
}

void SlotService::commit_plans(Batch& batch, const std::vector<std::size_t>& which) {
  std::vector<Step> steps;
  for (const std::size_t i : which) {
    const auto& more = batch.plans[i].steps;
    steps.insert(steps.end(), more.begin(), more.end());
  }
  auto answer = store_.commit(steps, store::Sync::Relaxed);
  if (!answer) {
    // An unknown one shows itself when the record is read again.
    const bool again =
        answer.error().code == Code::UnknownOutcome && ++batch.unknowns < kMostSlotUnknowns;
    for (const std::size_t i : which) {
      if (again) {
        batch.open.push_back(i);
      } else {
        batch.out[i] = answer.error();
      }
    }
    return;
  }
  if (const auto* done = std::get_if<store::Committed>(&*answer)) {
    ledger_.appended(done->revision);
    for (const std::size_t i : which) batch.done(i);
    return;
  }
  if (which.size() == 1) {
    batch.open.push_back(which.front());
    return;
  }
  for (const std::size_t i : which) commit_plans(batch, {i});
}

void SlotService::decide_batch(Batch& batch, const std::string& scheduler) {
  const std::vector<std::size_t> now = std::exchange(batch.open, {});
  std::vector<std::string> names;
  for (const std::size_t i : now) names.push_back(batch.asks[i].rule->name);
  auto looks = look_jobs(names);
  std::vector<std::size_t> group;
  std::size_t size = 0;
  for (std::size_t k = 0; k < now.size(); ++k) {
    const std::size_t i = now[k];
    if (!looks || !(*looks)[k]) {
      batch.out[i] = !looks ? looks.error() : (*looks)[k].error();
      continue;
    }
    const JobLook& look = *(*looks)[k];
    const core::JobRule& rule = *batch.asks[i].rule;
    core::JobSight sight = sight_of(look, scheduler);
    sight.held_back = batch.asks[i].held_back;
    sight.before = cadence_before(look, rule);
    core::JobDecision decision = core::decide_job(look.job, rule, sight);
    if (decision.changed) {
      batch.plans[i] = plan_of(look, rule, decision);
      if (auto ok = forget_oldest(look.name, decision.after, batch.plans[i].steps); !ok) {
        batch.out[i] = ok.error();
        continue;
      }
    }
    if (decision.outdated) decision.dropped.push_back(*decision.outdated);
    batch.decided[i] = {.config_differs = decision.config_differs,
                        .mine = decision.mine,
                        .schedule_changed = decision.schedule_changed,
                        .now = look.now,
                        .job = std::move(decision.after),
                        .ended = std::move(decision.ended),
                        .retried = std::move(decision.retried),
                        .dropped = std::move(decision.dropped)};
    if (!decision.changed) {
      batch.plans[i] = {};
      batch.done(i);
      continue;
    }
    const std::size_t more = batch.plans[i].steps.size();
    if (size + more > store::Store::kMaxSteps) {
      commit_plans(batch, std::exchange(group, {}));
      size = 0;
    }
    group.push_back(i);
    size += more;
  }
  if (!group.empty()) commit_plans(batch, group);
}

std::vector<Result<api::Decided>> SlotService::decide(const std::vector<api::DecideAsk>& asks,
                                                      const std::string& scheduler) {
  constexpr std::size_t kAtOnce = 200;
  std::vector<std::optional<Result<api::Decided>>> found(asks.size());
  Batch batch{.asks = asks,
              .out = found,
              .open = {},
              .plans = std::vector<Plan>(asks.size()),
              .decided = std::vector<api::Decided>(asks.size()),
              .before = std::vector<api::Decided>(asks.size())};
  for (std::size_t first = 0; first < asks.size(); first += kAtOnce) {
    for (std::size_t i = first; i < std::min(first + kAtOnce, asks.size()); ++i) {
      if (auto ok = check_job_name(asks[i].rule->name); !ok) {
        found[i] = ok.error();
      } else {
        batch.open.push_back(i);
      }
    }
    for (int tries = 0; tries < kMostSlotTries && !batch.open.empty(); ++tries) {
      decide_batch(batch, scheduler);
    }
    for (const std::size_t i : batch.open) batch.out[i] = job_too_busy(asks[i].rule->name);
    batch.open.clear();
  }
  std::vector<Result<api::Decided>> out;
  out.reserve(found.size());
  for (auto& one : found) out.push_back(std::move(*one));
  return out;
}

Status SlotService::keep(const std::string& job) {
  Step step;
  step.kind = Step::Kind::Touch;
  step.key = job_key(job);
  step.demand = TimerState::Running;
  step.timer = Step::TimerOp::Extend;
  step.ttl = kAssignment;
  auto answer = Keeper(store_, clock_, once_).commit({step}, store::Sync::Relaxed, step_done);
  if (!answer) return answer.error();
  if (std::holds_alternative<store::Committed>(*answer)) return {};
  return Error{Code::Lost, cat("what is due of job ", quoted(job),
                               " is no longer kept for one scheduler: anybody may start it")};
}

}  // namespace stint::service
