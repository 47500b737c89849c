// What people order of a job, and what is read out of the store about it: add, pause, resume,
// history.
#include <algorithm>

#include "api/slots_json.h"
#include "service/settling.h"
#include "service/slot_plan.h"

namespace stint::service {

using store::Step;

namespace {

Step bell_step(WallTime now) {
  Step bell;
  bell.kind = Step::Kind::Set;
  bell.key = kJobBell;
  bell.value = std::to_string(to_ms(now));
  bell.timer = Step::TimerOp::Stop;
  return bell;
}

}  // namespace

Result<core::Job> SlotService::order(const core::JobRule& rule, const Order& decide,
                                     const api::Event& event,
                                     const std::function<std::string(const core::Job&)>& write) {
  const Keeper keeper(store_, clock_, once_);
  if (auto ok = check_job_name(rule.name); !ok) return ok.error();
  for (int tries = 0; tries < kMostSlotTries; ++tries) {
    auto look = look_job(rule.name);
    if (!look) return look.error();
    std::vector<Step> checks;
    auto decision = decide(*look, checks);
    if (!decision) return decision.error();
    if (!*decision) {
      core::Job as_it_is = look->job.value_or(core::Job{});
      if (auto kept = keeper.keep([&] { return write(as_it_is); }); !kept) return kept.error();
      return as_it_is;
    }
    Plan plan = plan_of(*look, rule, **decision);
    plan.steps.insert(plan.steps.end(), checks.begin(), checks.end());
    if (!plan.more) {
      api::Event line = event;
      line.at = look->now;
      plan.steps.push_back(append_event(line));
      plan.steps.push_back(bell_step(look->now));
    }
    // The last commit does what was asked for.
    auto answer = plan.more ? store_.commit(plan.steps, store::Sync::Durable)
                            : keeper.commit(std::move(plan.steps), store::Sync::Durable,
                                            [&] { return write((*decision)->after); });
    if (!answer) return answer.error();
    if (const auto* done = std::get_if<store::Committed>(&*answer)) {
      ledger_.appended(done->revision);
      if (!plan.more) return std::move((*decision)->after);
    }
  }
  return job_too_busy(rule.name);
}

namespace {

Error differs(const std::string& job) {
  return invalid(cat("config_differs: job ", quoted(job),
                     " has another schedule in the store; load this file where the schedulers run "
                     "(SIGHUP, or 'stint cron FILE --once'), or name the file that they run"));
}

Error full(const std::string& job) {
  return {Code::Failed, cat("job ", quoted(job),
                            " has too many slots waiting to be started; have a scheduler start "
                            "them ('stint cron', or 'stint cron --once'), then ask again")};
}

// An active slot with the longest names has to fit into the record besides.
bool has_room(const core::Job& job) {
  constexpr std::size_t kActive = 300 + Owner::kMaxBytes + 2 * ResourceName::kMaxBytes;
  return encode(job).size() + (job.active ? 0 : kActive) <= store::Store::kMaxValueBytes;
}

}  // namespace

Result<std::optional<core::EndedSlot>> SlotService::ended_row(const std::string& job, WallTime at,
                                                              std::vector<Step>& checks) {
  std::optional<core::EndedSlot> out;
  auto reading = store_.read({slot_row_key(job, at)});
  if (!reading) return reading.error();
  const store::Entry& row = reading->entries.front();
  if (row.present()) {
    auto ended = decode_slot(at, row.value);
    if (!ended) return ended.error();
    out = std::move(*ended);
    return out;
  }
  Step absent;
  absent.key = row.key;
  absent.expect = store::Expect::Absent;
  checks.push_back(std::move(absent));
  return out;
}

// Of the ranges, which do not overlap, only the last one that begins before it can have it.
Result<std::optional<core::EndedSlot>> SlotService::dropped_at(const core::JobRule& rule,
                                                               const core::Slot& slot) {
  std::optional<core::EndedSlot> out;
  auto found = store_.scan({.prefix = skips_prefix(rule.name),
                            .after = skip_row_key(rule.name, slot.at + Millis(1)),
                            .limit = 1,
                            .backwards = true});
  if (!found) return found.error();
  if (found->entries.empty()) return out;
  auto from = instant_of(found->entries.front().key);
  if (!from) return from.error();
  auto row = decode_range(*from, found->entries.front().value);
  if (!row) return row.error();
  if (slot.at > row->range.to) return out;
  // Of another schedule: whether it was one of its slots is not known here.
  const bool same = row->schedule == rule.schedule && row->tz == rule.tz;
  const auto fires = core::next_time(rule.expression, rule.zone, core::whole_seconds(slot.at),
                                     core::Bound::Inclusive);
  if (same && (!fires || core::wall_of(fires->instant) != slot.at)) return out;
  out = core::EndedSlot{.slot = slot,
                        .state = row->range.reason,
                        .owner = {},
                        .resource = {},
                        .token = {},
                        .cause = row->range.cause};
  return out;
}

Result<api::SlotAdded> SlotService::add(const core::JobRule& rule, std::optional<core::Slot> asked,
                                        const std::string& scheduler) {
  api::SlotAdded out;
  const auto decide = [&](const JobLook& look,
                          std::vector<Step>& checks) -> Result<std::optional<core::JobDecision>> {
    out = {};
    core::Slot slot = asked.value_or(core::Slot{});
    // Each time anew, and after the record: an end is committed together with the record, so one
    // that comes in between is a conflict.   G9
    if (asked) {
      auto ended = ended_row(rule.name, asked->at, checks);
      if (ended && !*ended) ended = dropped_at(rule, *asked);
      if (!ended) return ended.error();
      if (*ended) {
        out = {.what = api::SlotAdded::What::Ended,
               .at = asked->at,
               .job = {},
               .ended = std::move(**ended)};
        return std::optional<core::JobDecision>();
      }
    }
    // The cursor would go there, and nothing would be due until then.
    if (asked && asked->at > look.now) {
      return invalid(cat(core::slot_key(rule.name, asked->at), " is not due yet: it is ",
                         format_utc(look.now), " by the store; ask again then"));
    }
    if (asked && look.job && asked->at <= look.job->forgotten) {
      return Error{Code::Failed, cat(core::slot_key(rule.name, asked->at),
                                     " is so old that it is no longer on record what became of it; "
                                     "'stint cron trigger' runs the job under a key of its own")};
    }
    if (!asked) {
      // Between two seconds: it never meets a scheduled one.
      slot.at = look.now;
      if (slot.at == core::wall_of(core::whole_seconds(slot.at))) slot.at += Millis(1);
      const core::ZoneSpan span = rule.zone.at(core::whole_seconds(slot.at));
      slot.nominal = span.local(core::whole_seconds(slot.at));
    }
    out.at = slot.at;
    auto decision = core::add_slot(look.job, rule, sight_of(look, scheduler), slot);
    if (!decision) out.what = api::SlotAdded::What::Open;
    if (decision && decision->config_differs) out.what = api::SlotAdded::What::ConfigDiffers;
    if (decision && decision->config_differs) {
      decision.reset();
    } else if (decision && (decision->full || !has_room(decision->after))) {
      return full(rule.name);
    }
    return decision;
  };
  const api::Event event = slot_event("job_triggered", rule.name, {});
  const auto write = [&](const core::Job& job) {
    out.job = job;
    return to_json(out);
  };
  auto job = order(rule, decide, event, write);
  if (!job) return job.error();
  out.job = std::move(*job);
  return out;
}

Status SlotService::pause(const core::JobRule& rule, const std::string& by) {
  api::Event event = slot_event("job_paused", rule.name, {});
  event.details.emplace_back("by", by);
  const auto decide = [&](const JobLook& look,
                          std::vector<Step>&) -> Result<std::optional<core::JobDecision>> {
    std::optional<core::JobDecision> none;
    if (look.job && look.job->paused) return none;
    core::JobDecision decision;
    if (look.job) {
      decision.after = *look.job;
    } else {
      decision = core::decide_job(std::nullopt, rule, sight_of(look, ""));
    }
    decision.after.paused = true;
    decision.after.pause.reset();
    return std::optional(decision);
  };
  auto job = order(rule, decide, event,
                   [](const core::Job&) { return std::string(R"({"paused":true})"); });
  if (!job) return job.error();
  return {};
}

// What came due meanwhile is accounted for before the job goes on.
Status SlotService::resume(const core::JobRule& rule, const std::string& by) {
  api::Event event = slot_event("job_resumed", rule.name, {});
  event.details.emplace_back("by", by);
  const auto decide = [&](const JobLook& look,
                          std::vector<Step>&) -> Result<std::optional<core::JobDecision>> {
    std::optional<core::JobDecision> none;
    if (!look.job || !look.job->paused) return none;
    // What was missed is the store's schedule's: only that one can account for it.
    if (look.job->digest != rule.digest) return differs(rule.name);
    core::JobDecision decision = core::decide_job(look.job, rule, sight_of(look, ""));
    decision.assign = false;
    if (decision.more) return std::optional(decision);
    decision.after.paused = false;
    decision.after.pause.reset();
    decision.after.due_by.clear();
    return std::optional(decision);
  };
  auto job = order(rule, decide, event,
                   [](const core::Job&) { return std::string(R"({"paused":false})"); });
  if (!job) return job.error();
  return {};
}

Status SlotService::each_job(
    const std::function<Status(const std::string& name, const store::Entry& entry)>& look) {
  std::string after;
  while (true) {
    auto page = store_.scan(
        {.prefix = std::string(kJobPrefix), .after = after, .limit = kPage, .backwards = false});
    if (!page) return page.error();
    for (const store::Entry& entry : page->entries) {
      after = entry.key;
      if (auto ok = look(entry.key.substr(kJobPrefix.size()), entry); !ok) return ok;
    }
    if (page->entries.size() < kPage) return {};
  }
}

Result<std::vector<std::string>> SlotService::open_jobs() {
  std::vector<std::string> out;
  auto done = each_job([&](const std::string& name, const store::Entry& entry) -> Status {
    // Cheaper than reading every record; a name that looks like it is only looked at in vain.
    const bool open = entry.value.find("\"due\"") != std::string::npos ||
                      entry.value.find("\"active\"") != std::string::npos;
    if (open) out.push_back(name);
    return {};
  });
  if (!done) return done.error();
  return out;
}

Result<std::vector<api::NamedJob>> SlotService::jobs() {
  std::vector<api::NamedJob> out;
  auto done = each_job([&](const std::string& name, const store::Entry& entry) -> Status {
    auto job = decode_job(entry.value);
    if (!job) return job.error();
    out.push_back({name, std::move(*job)});
    return {};
  });
  if (!done) return done.error();
  return out;
}

Result<api::JobHistory> SlotService::history(const std::string& job, std::size_t limit) {
  api::JobHistory out;
  auto look = look_job(job);
  if (!look) return look.error();
  out.job = std::move(look->job);
  auto rows =
      store_.scan({.prefix = slots_prefix(job), .after = "", .limit = limit, .backwards = true});
  if (!rows) return rows.error();
  for (const store::Entry& entry : rows->entries) {
    auto at = instant_of(entry.key);
    if (!at) return at.error();
    auto ended = decode_slot(*at, entry.value);
    if (!ended) return ended.error();
    out.ended.push_back(std::move(*ended));
  }
  auto ranges =
      store_.scan({.prefix = skips_prefix(job), .after = "", .limit = limit, .backwards = true});
  if (!ranges) return ranges.error();
  for (const store::Entry& entry : ranges->entries) {
    auto from = instant_of(entry.key);
    if (!from) return from.error();
    auto row = decode_range(*from, entry.value);
    if (!row) return row.error();
    out.ranges.push_back(std::move(*row));
  }
  return out;
}

Result<std::unique_ptr<Watch>> SlotService::watch() { return store_.watch(kJobBell); }

}  // namespace stint::service
