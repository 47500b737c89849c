// Jobs and their records, as the tests of core/slots.h need them.
#pragma once

#include <string>
#include <utility>

#include "core/slots.h"

namespace stint::core::played {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_seconds;
using Lease = JobSight::Lease;
using What = SlotStep::What;

inline constexpr std::chrono::sys_seconds kNoon =
    std::chrono::sys_days(std::chrono::year(2026) / 11 / 15) + std::chrono::hours(12);

inline JobRule rule(std::string_view schedule, std::size_t max_backfill = 1) {
  JobRule out;
  out.name = "nightly";
  out.schedule = schedule;
  out.expression = parse_cron(schedule).value();
  out.digest = schedule_digest(schedule, "");
  out.max_backfill = max_backfill;
  return out;
}

inline JobSight at(std::chrono::sys_seconds now, JobSight::Lease active = JobSight::Lease::None,
                   std::string who = "a") {
  return {.now = wall_of(now), .active = active, .assigned = false, .scheduler = std::move(who)};
}

inline Job fresh(const JobRule& job, std::chrono::sys_seconds now) {
  return decide_job(std::nullopt, job, at(now)).after;
}

inline SlotGrip grip_of(const Slot& slot, std::uint64_t token = 7, std::string who = "a") {
  return {.at = slot.at,
          .attempt = slot.attempt,
          .scheduler = std::move(who),
          .owner = Owner::parse("host").value(),
          .resource = "nightly",
          .token = Token(token)};
}

inline Job running(const JobRule& job, std::chrono::sys_seconds now) {
  const Job due = decide_job(fresh(job, now - std::chrono::minutes(1)), job, at(now)).after;
  const SlotGrip grip = grip_of(due.due.front());
  const Job starting = start_slot(claim_slot(due, grip).after, grip, wall_of(now)).after;
  return run_slot(starting, grip).after;
}

}  // namespace stint::core::played
