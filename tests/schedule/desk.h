// A store in memory, a clock that moves when told, and schedulers whose runs are played by hand.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "schedule/scheduler.h"
#include "service/lease_service.h"
#include "service/slot_service.h"
#include "store/memory/memory_store.h"

namespace stint::test {

class HandClock final : public Clock {
 public:
  MonoTime mono() const override { return MonoTime(now_); }
  WallTime wall() const override {
    return WallTime(Millis(1'794'744'000'000) + std::chrono::duration_cast<Millis>(now_) + step_);
  }
  void advance(Nanos by) { now_ += by; }
  void step_wall(Millis by) { step_ += by; }

 private:
  Nanos now_{std::chrono::hours(1)};
  Millis step_{0};
};

inline schedule::JobConfig job_of(const std::string& name, const std::string& schedule,
                                  std::size_t max_backfill = 1) {
  schedule::JobConfig out;
  out.rule.name = name;
  out.rule.schedule = schedule;
  out.rule.expression = core::parse_cron(schedule).value();
  out.rule.digest = core::schedule_digest(schedule, "UTC");
  out.rule.max_backfill = max_backfill;
  out.resources = {ResourceName::parse(name).value()};
  out.terms.ttl = std::chrono::seconds(30);
  return out;
}

struct Launched {
  schedule::JobConfig job;
  core::Slot slot;
  std::string scheduler;
  MonoTime at;
};

class Desk {
 public:
  HandClock clock;
  store::MemoryStore store{clock};
  SeededRandom random{1};
  service::Ledger ledger{store, clock, 10'000};
  service::LeaseService leases{
      store, ledger, service::begin_life(store, random, clock.wall(), nullptr, {}).value(),
      clock, random, nullptr};
  service::SlotService slots{store, ledger, clock};
  std::vector<Launched> launched;
  std::vector<std::string> said;

  std::unique_ptr<schedule::Scheduler> scheduler(const std::string& id,
                                                 std::vector<schedule::JobConfig> jobs,
                                                 std::size_t concurrency = 0,
                                                 api::Slots* other = nullptr) {
    auto out = std::make_unique<schedule::Scheduler>(
        other != nullptr ? *other : slots, ledger, clock, id,
        schedule::SchedulerHooks{
            .launch =
                [this, id](const schedule::JobConfig& job, const core::Slot& slot) {
                  launched.push_back({job, slot, id, clock.mono()});
                  return Status();
                },
            .say = [this](const std::string& line) { said.push_back(line); }});
    schedule::Config config;
    config.jobs = std::move(jobs);
    config.concurrency = concurrency;
    EXPECT_TRUE(out->load(std::move(config)).has_value());
    return out;
  }

  // Steps a scheduler as its loop would, until the clock has moved on by `length`.
  void run(std::vector<schedule::Scheduler*> schedulers, Nanos length) {
    const MonoTime end = clock.mono() + length;
    while (true) {
      MonoTime next = end;
      for (schedule::Scheduler* one : schedulers) next = std::min(next, one->step());
      if (clock.mono() >= end) return;
      clock.advance(std::max<Nanos>(next - clock.mono(), Millis(1)));
    }
  }

  // Takes the lease and claims the slot.
  Result<api::SlotProof> claim(const Launched& run) {
    const Claim claim = Claim::make(random);
    auto answer = leases.acquire({.resource = run.job.resources.front(),
                                  .owner = Owner::parse("runner-" + run.scheduler).value(),
                                  .claim = claim,
                                  .terms = run.job.terms,
                                  .note = {},
                                  .retake = {},
                                  .count_refusal = false});
    if (!answer) return answer.error();
    const auto* granted = std::get_if<api::Granted>(&*answer);
    if (granted == nullptr) return Error{Code::Held, "held"};
    api::SlotProof proof{.job = run.job.rule.name,
                         .at = run.slot.at,
                         .attempt = run.slot.attempt,
                         .scheduler = run.scheduler,
                         .owner = granted->lease.owner,
                         .grip = {.resource = run.job.resources.front(),
                                  .token = granted->lease.token,
                                  .claim = claim,
                                  .owner = std::nullopt,
                                  .hint = std::nullopt}};
    auto claimed = slots.claim(proof);
    if (!claimed) return claimed.error();
    if (*claimed != api::StepAnswer::Done) return Error{Code::Lost, "gone"};
    return proof;
  }
  Result<api::SlotProof> start(const Launched& run) {
    auto proof = claim(run);
    if (!proof) return proof;
    EXPECT_EQ(slots.start(*proof).value(), api::StepAnswer::Done);
    return proof;
  }
  api::EndAnswer end(const api::SlotProof& proof, const schedule::JobConfig& job,
                     core::SlotState state = core::SlotState::Ran) {
    auto ended = slots.end(proof, {.state = state}, job.rule);
    EXPECT_TRUE(ended.has_value());
    EXPECT_TRUE(leases.release(proof.grip, false).has_value());
    return *ended;
  }
  // Runs what was launched last to its end, at once.
  void complete(schedule::Scheduler& scheduler, const Launched& run) {
    auto proof = start(run);
    ASSERT_TRUE(proof.has_value()) << proof.error().message;
    end(*proof, run.job);
    scheduler.finished(run.job.rule.name);
  }

  core::Job record(const std::string& job) { return *slots.history(job, 1).value().job; }
  std::vector<std::string> states(const std::string& job) {
    std::vector<std::string> out;
    const auto history = slots.history(job, 1000).value();
    for (const auto& ended : history.ended) out.emplace_back(core::word(ended.state));
    for (const auto& row : history.ranges) {
      out.push_back(std::string(core::word(row.range.reason)) + "*" +
                    std::to_string(row.range.count));
    }
    return out;
  }
};

}  // namespace stint::test
