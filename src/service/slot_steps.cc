// The steps of one slot, and of `stint once`: each a commit that expects the lease as it was seen.
// G8 G9
#include <algorithm>

#include "api/slots_json.h"
#include "service/settling.h"
#include "service/slot_plan.h"

namespace stint::service {

using store::Step;

namespace {

// Somebody else has it by now: the lost commit may have been done before that.
Error moved_on(std::string_view what) {
  return {Code::UnknownOutcome, cat("the store did not answer, and ", what,
                                    " has moved on since: it may or may not have been done")};
}

bool is_ours(const core::Record& record, const api::Grip& grip) {
  return record.own && record.own->token == grip.token &&
         record.own->claim.matches(grip.claim.hash());
}

core::SlotGrip grip_of(const api::SlotProof& proof) {
  return {.at = proof.at,
          .attempt = proof.attempt,
          .scheduler = proof.scheduler,
          .owner = proof.owner,
          .resource = proof.grip.resource.text(),
          .token = proof.grip.token};
}

}  // namespace

Result<core::SlotStep> SlotService::move(const api::SlotProof& proof, const Moving& how,
                                         const Move& step) {
  const Keeper keeper(store_, clock_, once_);
  int unknowns = 0;
  const std::string resource = proof.grip.resource.text();
  for (int tries = 0; tries < kMostSlotTries; ++tries) {
    auto lease = look_lease(resource);
    if (!lease) return unsettled(lease.error(), unknowns);
    auto look = look_job(proof.job);
    if (!look) return unsettled(look.error(), unknowns);
    const bool live = is_ours(lease->record, proof.grip) && lease->held_with(proof.grip.token);
    // Who shows the token of a lease that stands, but not its claim, has read it somewhere.
    const auto& own = lease->record.own;
    const bool forged =
        own && own->token == proof.grip.token && !own->claim.matches(proof.grip.claim.hash());
    if (!look->job || forged || (how.needs_live && !live)) {
      if (unknowns > 0) return moved_on(cat("job ", quoted(proof.job)));
      return core::SlotStep{};
    }
    core::SlotStep moved = step(*look->job, grip_of(proof), look->now);
    // A superseded lease has no say in how its work ended.
    if (moved.ended && !is_ours(lease->record, proof.grip)) {
      moved.ended->state = core::SlotState::Lost;
    }
    const auto write = [&] { return how.write != nullptr ? how.write(moved) : step_done(); };
    if (moved.what == core::SlotStep::What::Gone) {
      if (unknowns > 0) return moved_on(cat("job ", quoted(proof.job)));
      return moved;
    }
    if (moved.what != core::SlotStep::What::Done) {
      if (auto kept = keeper.keep(write); !kept) return unsettled(kept.error(), unknowns);
      return moved;
    }
    std::vector<Step> steps = {set_record(job_key(proof.job), encode(moved.after), look->version)};
    lease->expect(steps);
    if (moved.ended) {
      add_ended(steps, proof.job, *moved.ended, look->now, moved.again);
      if (auto ok = forget_oldest(proof.job, moved.after, steps); !ok) {
        return unsettled(ok.error(), unknowns);
      }
    }
    auto answer = keeper.commit(std::move(steps), how.sync, write);
    if (!answer) {
      const bool again =
          answer.error().code == Code::UnknownOutcome && ++unknowns < kMostSlotUnknowns;
      if (!again) return unsettled(answer.error(), unknowns);
      continue;
    }
    if (const auto* done = std::get_if<store::Committed>(&*answer)) {
      if (moved.ended) ledger_.appended(done->revision);
      return moved;
    }
  }
  return unsettled(job_too_busy(proof.job), unknowns);
}

// With what ends slots or drops them, and in its commit: the cursor has outlived them. The first
// step writes the job's record.
Status SlotService::forget_oldest(const std::string& job, core::Job& after,
                                  std::vector<Step>& steps) {
  if (auto ok = forget_rows(job, after, steps); !ok) return ok;
  return forget_ranges(job, after, steps);
}

namespace {

// A commit has an end; the next one goes on. One more step may keep the answer.
std::size_t room_in(const std::vector<Step>& steps) {
  constexpr std::size_t kMost = store::Store::kMaxSteps - 1;
  return std::min<std::size_t>(kMost - std::min(steps.size(), kMost), kForgottenAtOnce);
}

api::EndAnswer end_of(const core::SlotStep& moved) {
  return {api::StepAnswer::Done, moved.ended->state, moved.again};
}

}  // namespace

Status SlotService::forget_rows(const std::string& job, core::Job& after,
                                std::vector<Step>& steps) {
  const std::size_t most = room_in(steps);
  if (after.rows < kKeptSlots + kForgottenAtOnce || most == 0) return {};
  auto oldest =
      store_.scan({.prefix = slots_prefix(job), .after = "", .limit = most, .backwards = false});
  if (!oldest) return oldest.error();
  for (const store::Entry& entry : oldest->entries) {
    auto at = instant_of(entry.key);
    if (!at) return at.error();
    after.forgotten = std::max(after.forgotten, *at);
    Step& gone = steps.emplace_back();
    gone.kind = Step::Kind::Remove;
    gone.key = entry.key;
  }
  after.rows -= oldest->entries.size();
  // Fewer than were counted: a count that went wrong is set right.
  if (oldest->entries.size() < most) after.rows = 0;
  steps.front().value = encode(after);
  return {};
}

Status SlotService::forget_ranges(const std::string& job, core::Job& after,
                                  std::vector<Step>& steps) {
  const std::size_t most = room_in(steps);
  if (after.ranges < kKeptRanges + kForgottenAtOnce || most == 0) return {};
  auto oldest =
      store_.scan({.prefix = skips_prefix(job), .after = "", .limit = most, .backwards = false});
  if (!oldest) return oldest.error();
  for (const store::Entry& entry : oldest->entries) {
    auto from = instant_of(entry.key);
    if (!from) return from.error();
    auto row = decode_range(*from, entry.value);
    if (!row) return row.error();
    after.forgotten = std::max(after.forgotten, row->range.to);
    Step& gone = steps.emplace_back();
    gone.kind = Step::Kind::Remove;
    gone.key = entry.key;
  }
  after.ranges -= oldest->entries.size();
  if (oldest->entries.size() < most) after.ranges = 0;
  steps.front().value = encode(after);
  return {};
}

Result<api::StepAnswer> SlotService::simple(const api::SlotProof& proof, const Moving& how,
                                            const Move& step) {
  auto moved = move(proof, how, step);
  if (!moved) return moved.error();
  return moved->what == core::SlotStep::What::Gone ? api::StepAnswer::Gone : api::StepAnswer::Done;
}

Result<api::StepAnswer> SlotService::claim(const api::SlotProof& proof) {
  return simple(proof, {}, [](const core::Job& job, const core::SlotGrip& grip, WallTime) {
    return core::claim_slot(job, grip);
  });
}

Result<api::StepAnswer> SlotService::start(const api::SlotProof& proof) {
  return simple(proof, {.needs_live = true, .sync = store::Sync::Durable},  // G11
                [](const core::Job& job, const core::SlotGrip& grip, WallTime now) {
                  return core::start_slot(job, grip, now);
                });
}

Result<api::StepAnswer> SlotService::running(const api::SlotProof& proof) {
  return simple(proof, {}, [](const core::Job& job, const core::SlotGrip& grip, WallTime) {
    return core::run_slot(job, grip);
  });
}

Result<api::StepAnswer> SlotService::hand_back(const api::SlotProof& proof) {
  return simple(proof, {.needs_live = false, .sync = store::Sync::Relaxed},
                [](const core::Job& job, const core::SlotGrip& grip, WallTime) {
                  return core::hand_back_slot(job, grip);
                });
}

Result<api::EndAnswer> SlotService::end(const api::SlotProof& proof, const core::SlotEnd& end,
                                        const core::JobRule& rule) {
  auto moved = move(proof,
                    {.needs_live = false,
                     .sync = store::Sync::Durable,
                     .write = [](const core::SlotStep& done) { return to_json(end_of(done)); }},
                    [&](const core::Job& job, const core::SlotGrip& grip, WallTime now) {
                      return core::end_slot(job, grip, end, rule, now);
                    });
  if (!moved) return moved.error();
  if (moved->what == core::SlotStep::What::Gone) return api::EndAnswer{};
  return end_of(*moved);
}

Result<api::EndAnswer> SlotService::skip(const api::SlotSkip& skip) {
  for (int tries = 0; tries < kMostSlotTries; ++tries) {
    auto look = look_job(skip.job);
    if (!look) return look.error();
    if (!look->job) return api::EndAnswer{};
    core::SlotGrip grip{.at = skip.at,
                        .attempt = skip.attempt,
                        .scheduler = skip.scheduler,
                        .owner = {},
                        .resource = {},
                        .token = {}};
    core::SlotState why = skip.why;
    if (skip.by) {
      grip.owner = skip.by->owner;
      grip.resource = skip.by->resource;
      grip.token = skip.by->token;
      // The run before may have ended already and only its lease be left.
      const core::Job& job = *look->job;
      const auto is_by = [&](const std::string& resource, Token token) {
        return resource == skip.by->resource && token == skip.by->token;
      };
      const bool own = is_by(job.last_resource, job.last_token) ||
                       (job.active && is_by(job.active->resource, job.active->token)) ||
                       // Died before it claimed its slot: its note still says whose it was.
                       skip.by->note.starts_with(skip.job + "@");
      if (why == core::SlotState::SkippedHeld && own) why = core::SlotState::SkippedOverlap;
    }
    core::SlotStep moved = core::skip_slot(*look->job, grip, why, look->now);
    if (moved.what == core::SlotStep::What::Gone) return api::EndAnswer{};
    std::vector<Step> steps = {set_record(job_key(skip.job), encode(moved.after), look->version)};
    add_ended(steps, skip.job, *moved.ended, look->now, false);
    const api::EndAnswer ended{api::StepAnswer::Done, moved.ended->state, false};
    auto answer = Keeper(store_, clock_, once_).commit(std::move(steps), store::Sync::Relaxed, [&] {
      return to_json(ended);
    });
    if (!answer) return answer.error();
    if (const auto* done = std::get_if<store::Committed>(&*answer)) {
      ledger_.appended(done->revision);
      return ended;
    }
  }
  return job_too_busy(skip.job);
}

// ---- once

Result<api::OnceRecord> SlotService::once(const std::string& key) {
  if (auto ok = check_once_key(key); !ok) return ok.error();
  auto reading = store_.read({once_key(key)});
  if (!reading) return reading.error();
  const store::Entry& entry = reading->entries.front();
  if (!entry.present()) return api::OnceRecord{};
  return decode_once(entry.value);
}

Result<api::StepAnswer> SlotService::once_move(const std::string& key, const api::Grip& grip,
                                               const OnceMove& next) {
  int unknowns = 0;
  for (int tries = 0; tries < kMostSlotTries; ++tries) {
    auto lease = look_lease(grip.resource.text());
    if (!lease) return unsettled(lease.error(), unknowns);
    auto reading = store_.read({once_key(key)});
    if (!reading) return unsettled(reading.error(), unknowns);
    const store::Entry& entry = reading->entries.front();
    auto before = entry.present() ? decode_once(entry.value) : api::OnceRecord{};
    if (!before) return unsettled(before.error(), unknowns);
    const auto after =
        is_ours(lease->record, grip) ? next(*before, now_of(*reading)) : std::nullopt;
    if (!after) {
      if (unknowns > 0) return moved_on(quoted(key));
      return api::StepAnswer::Gone;
    }
    std::vector<Step> steps = {set_record(once_key(key), encode(*after), entry.version)};
    lease->expect(steps);
    auto answer =
        Keeper(store_, clock_, once_).commit(std::move(steps), store::Sync::Durable, step_done);
    if (!answer) {
      const bool again =
          answer.error().code == Code::UnknownOutcome && ++unknowns < kMostSlotUnknowns;
      if (!again) return unsettled(answer.error(), unknowns);
      continue;
    }
    if (std::holds_alternative<store::Committed>(*answer)) return api::StepAnswer::Done;
  }
  return unsettled(job_too_busy(key), unknowns);
}

Result<api::StepAnswer> SlotService::once_start(const std::string& key, const api::Grip& grip,
                                                const Owner& owner) {
  return once_move(key, grip, [&](const api::OnceRecord& before, WallTime now) {
    std::optional<api::OnceRecord> after;
    if (before.state == api::OnceRecord::State::Done) return after;
    after = api::OnceRecord{.state = api::OnceRecord::State::Started,
                            .owner = owner,
                            .token = grip.token,
                            .started_at = now,
                            .ended_at = {},
                            .exit_code = {}};
    return after;
  });
}

Result<api::StepAnswer> SlotService::once_end(const std::string& key, const api::Grip& grip,
                                              int exit_code) {
  return once_move(key, grip, [&](const api::OnceRecord& before, WallTime now) {
    std::optional<api::OnceRecord> after;
    if (before.token != grip.token) return after;
    after = before;
    after->state = exit_code == 0 ? api::OnceRecord::State::Done : api::OnceRecord::State::Failed;
    after->ended_at = now;
    after->exit_code = exit_code;
    return after;
  });
}

}  // namespace stint::service
