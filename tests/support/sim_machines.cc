#include "tests/support/sim_machines.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"

namespace stint::test {

SimMachine::SimMachine(SimGround ground, SimClock& clock, SlotTruth& truth, std::string name,
                       std::vector<schedule::JobConfig> jobs, Chances chances)
    : world_(ground),
      clock_(clock),
      truth_(truth),
      name_(std::move(name)),
      jobs_(std::move(jobs)),
      chances_(chances),
      ledger_(ground.store, clock, 50),
      slots_(ground.store, ledger_, clock) {}

void SimMachine::start_scheduler() {
  const std::string id = cat(name_, "-", ++lives_);
  scheduler_ = std::make_unique<schedule::Scheduler>(
      slots_, ledger_, clock_, id,
      schedule::SchedulerHooks{
          .launch =
              [this, id](const schedule::JobConfig& job, const core::Slot& slot) {
                auto runner = std::make_unique<Runner>();
                runner->job = job;
                runner->slot = slot;
                runner->scheduler = id;
                runner->next = clock_.mono() + Millis(1 + random().below(50));
                runners_.push_back(std::move(runner));
                return Status();
              },
          .say = [](const std::string&) {}});
  schedule::Config config;
  config.jobs = jobs_;
  // It is asked again when the store answers.
  if (!scheduler_->load(std::move(config))) scheduler_.reset();
}

void SimMachine::kill() {
  ++truth_.kills;
  scheduler_.reset();
  back_at_ = clock_.mono() +
             Millis(random().below(static_cast<std::uint64_t>(chances_.longest_away.count())));
  if (random().below(chances_.crash) != 0) return;
  for (const auto& runner : runners_) stop_work(*runner);
  runners_.clear();
}

std::optional<MonoTime> SimMachine::step(MonoTime now) {
  if (!calm_ && scheduler_ && random().below(chances_.kill) == 0) kill();
  if (!calm_ && random().below(500) == 0) {
    world_.scheduler.freeze(*this, std::chrono::seconds(random().below(200)));
  }
  MonoTime next = MonoTime::max();
  for (const auto& runner : runners_) {
    if (runner->next <= clock_.mono()) advance(*runner);
    if (runner->phase == Runner::Phase::Over && scheduler_) {
      scheduler_->finished(runner->job.rule.name);
    }
  }
  std::erase_if(runners_, [](const auto& r) { return r->phase == Runner::Phase::Over; });
  if (!scheduler_ && now >= back_at_) start_scheduler();
  if (scheduler_) {
    next = scheduler_->step();
  } else {
    next = std::max(back_at_, clock_.mono() + Millis(500));
  }
  for (const auto& runner : runners_) next = std::min(next, runner->next);
  return std::max(next, clock_.mono() + Millis(1));
}

void SimMachine::advance(Runner& runner) {
  using Phase = Runner::Phase;
  runner.next = clock_.mono() + Millis(1 + random().below(20));
  switch (runner.phase) {
    case Phase::Acquire: acquire(runner); return;
    case Phase::Claim: {
      const auto claimed = slots_.claim(*runner.proof);
      const bool ok = claimed && *claimed == api::StepAnswer::Done;
      runner.phase = ok ? Phase::Start : Phase::Release;
      return;
    }
    case Phase::Start: begin(runner); return;
    case Phase::Work: work(runner); return;
    case Phase::End: {
      // Asked again as long as the store does not answer, as people restart what hangs.
      const auto ended = slots_.end(*runner.proof, {.state = runner.end}, runner.job.rule);
      if (!ended && ended.error().code == Code::Unavailable) return;
      runner.phase = Phase::Release;
      return;
    }
    case Phase::Release: {
      [[maybe_unused]] const auto released = world_.leases.release(runner.proof->grip, false);
      runner.phase = Phase::Over;
      return;
    }
    case Phase::Over: return;
  }
}

void SimMachine::acquire(Runner& runner) {
  const Claim claim = Claim::make(random());
  const MonoTime sent = clock_.mono();
  const auto answer =
      world_.leases.acquire({.resource = runner.job.resources.front(),
                             .owner = Owner::parse(name_).value(),
                             .claim = claim,
                             .terms = runner.job.terms,
                             .note = core::slot_key(runner.job.rule.name, runner.slot.at),
                             .retake = {},
                             .count_refusal = false});
  runner.phase = Runner::Phase::Over;
  if (!answer) return;
  if (const auto* refused = std::get_if<api::Refused>(&*answer)) {
    skip(runner, refused->lease);
    return;
  }
  const auto& granted = std::get<api::Granted>(*answer);
  if (granted.replayed) return;
  runner.proof = api::SlotProof{.job = runner.job.rule.name,
                                .at = runner.slot.at,
                                .attempt = runner.slot.attempt,
                                .scheduler = runner.scheduler,
                                .owner = granted.lease.owner,
                                .grip = {.resource = runner.job.resources.front(),
                                         .token = granted.lease.token,
                                         .claim = claim,
                                         .owner = std::nullopt,
                                         .hint = std::nullopt}};
  const Nanos ttl = runner.job.terms.ttl;
  runner.deadline = sent + ttl * 9 / 10;
  runner.renew_at = sent + ttl / 3;
  runner.phase = Runner::Phase::Claim;
}

void SimMachine::skip(const Runner& runner, const api::Lease& by) {
  // Taken for this very slot, and never claimed: it stays due.
  if (by.note == core::slot_key(runner.job.rule.name, runner.slot.at)) return;
  [[maybe_unused]] const auto skipped = slots_.skip({.job = runner.job.rule.name,
                                                     .at = runner.slot.at,
                                                     .attempt = runner.slot.attempt,
                                                     .scheduler = runner.scheduler,
                                                     .why = core::SlotState::SkippedHeld,
                                                     .by = by});
}

// The command is executed only after the store has acknowledged that it starts.   G9
void SimMachine::begin(Runner& runner) {
  const auto started = slots_.start(*runner.proof);
  if (!started || *started != api::StepAnswer::Done || clock_.mono() >= runner.deadline) {
    runner.phase = Runner::Phase::Over;  // nobody can know: it is left to the others
    return;
  }
  const std::string& job = runner.job.rule.name;
  const std::string key = core::slot_key(job, runner.slot.at);
  ++truth_.starts[{key, runner.slot.attempt}];
  world_.laws.slot_started(key, runner.slot.attempt);
  for (const auto& [other, until] : truth_.live[job]) {
    if (until > world_.scheduler.now()) world_.laws.slot_overtook(job);
  }
  truth_.live[job][&runner] = clock_.true_time(runner.deadline);
  if (runner.slot.backfill) truth_.backfills[job].push_back(world_.store.clock().wall());
  runner.started = true;
  runner.phase = Runner::Phase::Work;
  runner.ends = clock_.mono() +
                Millis(random().below(static_cast<std::uint64_t>(chances_.longest_run.count())));
  runner.end = random().below(10) == 0 ? core::SlotState::Failed : core::SlotState::Ran;
  [[maybe_unused]] const auto running = slots_.running(*runner.proof);
  runner.next = std::min(runner.ends, runner.renew_at);
}

void SimMachine::stop_work(Runner& runner) {
  if (!runner.started) return;
  runner.started = false;
  truth_.live[runner.job.rule.name].erase(&runner);
}

void SimMachine::work(Runner& runner) {
  const MonoTime now = clock_.mono();
  bool lost = now >= runner.deadline;
  if (!lost && now >= runner.renew_at) {
    const auto answer = world_.leases.renew(runner.proof->grip, runner.job.terms.ttl);
    if (answer && std::holds_alternative<api::Lost>(*answer)) lost = true;
    if (answer && !lost) {
      runner.deadline = now + Nanos(runner.job.terms.ttl) * 9 / 10;
      truth_.live[runner.job.rule.name][&runner] = clock_.true_time(runner.deadline);
      runner.renew_at = now + Nanos(runner.job.terms.ttl) / 3;
    } else {
      runner.renew_at = clock_.mono() + Millis(500);
    }
  }
  if (lost) runner.end = core::SlotState::Lost;
  if (lost || now >= runner.ends) {
    stop_work(runner);
    runner.phase = Runner::Phase::End;
    return;
  }
  runner.next = std::min({runner.ends, runner.renew_at, runner.deadline});
}

std::size_t account_for_slots(service::SlotService& slots, const schedule::JobConfig& config,
                              WallTime begun, const SlotTruth& truth, SimLaws& laws,
                              SlotStates& states) {
  std::size_t count_all = 0;
  const core::JobRule& rule = config.rule;
  const auto history = slots.history(rule.name, 1'000'000);
  CHECK(history && history->job, "the store does not answer, or does not know the job");
  std::map<WallTime, int> seen;
  for (const core::EndedSlot& ended : history->ended) {
    if (ended.slot.manual) continue;
    ++seen[ended.slot.at];
    ++states[rule.name][std::string(core::word(ended.state))];
    const std::string key = core::slot_key(rule.name, ended.slot.at);
    const bool started = truth.starts.contains({key, ended.slot.attempt});
    if (ended.state == core::SlotState::Ran && !started) laws.slot_counted(key + " not started", 0);
    if (core::is_skip(ended.state) && started && ended.slot.attempt == 1) {
      laws.slot_counted(key + " skipped and started", 2);
    }
  }
  for (const api::RangeRow& row : history->ranges) {
    states[rule.name][std::string(core::word(row.range.reason))] +=
        static_cast<int>(row.range.count);
    auto t = core::next_time(rule.expression, rule.zone, core::whole_seconds(row.range.from),
                             core::Bound::Inclusive);
    while (t && core::wall_of(t->instant) <= row.range.to) {
      ++seen[core::wall_of(t->instant)];
      t = core::next_time(rule.expression, rule.zone, t->instant, core::Bound::Exclusive);
    }
  }
  for (const core::Slot& slot : history->job->due) seen[slot.at] += slot.manual ? 0 : 1;
  const auto& active = history->job->active;
  if (active && !active->slot.manual) ++seen[active->slot.at];
  auto t = core::next_time(rule.expression, rule.zone, core::whole_seconds(begun),
                           core::Bound::Exclusive);
  while (t && core::wall_of(t->instant) <= history->job->cursor) {
    const WallTime at = core::wall_of(t->instant);
    ++count_all;
    laws.slot_counted(core::slot_key(rule.name, at), seen[at]);
    seen.erase(at);
    t = core::next_time(rule.expression, rule.zone, t->instant, core::Bound::Exclusive);
  }
  for (const auto& [at, count] : seen) {
    if (count > 0 && at > begun) laws.slot_counted(core::slot_key(rule.name, at) + " is none", 0);
  }
  return count_all;
}

}  // namespace stint::test
