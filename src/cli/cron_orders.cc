// stint cron check, pause, resume, trigger.
#include "api/json.h"
#include "base/text.h"
#include "cli/cron.h"
#include "cli/cron_jobs.h"
#include "cli/exit_codes.h"

namespace stint::cli {
namespace {

// Reads the job and opens the store; then `act`.
template <class Act>
int with_job(Session& session, const Act& act) {
  auto job = ordered_job(session);
  if (!job) return session.fail(job.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  return act(*job, (*opened)->slots());
}

Result<std::string> who(Session& session) {
  auto owner = session.owner();
  if (!owner) return owner.error();
  return owner->text();
}

using Change = Status (api::Slots::*)(const core::JobRule&, const std::string&);

int change(Session& session, Change what, bool paused, std::string_view done) {
  return with_job(session, [&](const schedule::JobConfig& job, api::Slots& slots) {
    auto by = who(session);
    if (!by) return session.fail(by.error());
    if (auto changed = (slots.*what)(job.rule, *by); !changed) return session.fail(changed.error());
    return session.done({{"job", job.rule.name}, {"paused", paused}},
                        cat("job ", quoted(job.rule.name), " ", done));
  });
}

}  // namespace

int cron_check(Session& session) {
  const auto& operands = session.words().operands();
  auto jobs = load_jobs(session, operands.size() > 1 ? std::optional(operands[1]) : std::nullopt);
  if (!jobs) return session.fail(jobs.error());
  for (const Error& problem : jobs->config.problems) session.fail(problem);
  if (!jobs->config.problems.empty()) return kUsage;
  const auto now = core::whole_seconds(session.clock().wall());
  std::vector<std::vector<api::JsonField>> rows;
  for (const schedule::JobConfig& job : jobs->config.jobs) {
    const core::JobRule& rule = job.rule;
    const auto next = core::next_time(rule.expression, rule.zone, now, core::Bound::Exclusive);
    const std::string at = next ? format_utc(core::wall_of(next->instant)) : "never";
    if (session.json()) {
      rows.push_back({{"job", rule.name},
                      {"schedule", rule.schedule},
                      {"resource", job.resources.front().text()},
                      {"next", at}});
    } else {
      session.print(cat(printable(rule.name), "\t", rule.schedule, "\tnext ", at));
    }
  }
  if (session.json()) session.print(api::to_json(rows));
  return kDone;
}

int cron_pause(Session& session) {
  return change(session, &api::Slots::pause, true,
                "is paused: its slots are recorded as skipped_paused until it is resumed");
}

int cron_resume(Session& session) {
  return change(session, &api::Slots::resume, false, "goes on; what came due meanwhile is not run");
}

int cron_trigger(Session& session) {
  return with_job(session, [&](const schedule::JobConfig& job, api::Slots& slots) {
    auto added = slots.add(job.rule, std::nullopt, "");
    if (!added) return session.fail(added.error());
    if (added->what == api::SlotAdded::What::ConfigDiffers) {
      return session.fail(
          invalid("config_differs: another schedule of this job was loaded just now; ask again"));
    }
    const std::string key = core::slot_key(job.rule.name, added->at);
    session.print(session.json() ? api::to_json(std::vector<api::JsonField>{{"job", job.rule.name},
                                                                            {"key", key}})
                                 : key);
    return static_cast<int>(kDone);
  });
}

}  // namespace stint::cli
