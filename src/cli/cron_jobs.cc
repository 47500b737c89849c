#include "cli/cron_jobs.h"

#include <algorithm>

#include "api/slots_json.h"
#include "app/job_file.h"
#include "app/zones.h"
#include "base/text.h"

namespace stint::cli {

Result<Jobs> load_jobs(Session& session, const std::optional<std::string>& given) {
  auto file =
      app::find_job_file(session.environment(), given ? given : session.words().value("--file"));
  if (!file) return file.error();
  auto config = app::load_job_file(session.environment(), file->path);
  if (!config) return config.error();
  if (config->store) session.use_jobs_store(*config->store, *file);
  return Jobs{file->path, std::move(*config)};
}

Result<schedule::JobConfig> find_job(Jobs jobs, const std::string& name) {
  std::string known;
  for (schedule::JobConfig& job : jobs.config.jobs) {
    if (job.rule.name == name) return std::move(job);
    known += cat(known.empty() ? "" : ", ", printable(job.rule.name));
  }
  // It may be there, and wrong.
  for (const Error& problem : jobs.config.problems) {
    if (problem.message.find(cat("job ", quoted(name), ":")) != std::string::npos) return problem;
  }
  return invalid(cat("there is no job ", quoted(name), " in ", jobs.path,
                     known.empty() ? "" : cat(" (there: ", known, ")")));
}

Result<schedule::JobConfig> operand_job(Session& session) {
  auto jobs = load_jobs(session);
  if (!jobs) return jobs.error();
  return find_job(std::move(*jobs), session.words().operands()[1]);
}

Result<schedule::JobConfig> ordered_job(Session& session) {
  auto job = operand_job(session);
  if (!job) return job.error();
  auto opened = session.open();
  if (!opened) return opened.error();
  auto known = (*opened)->slots().history(job->rule.name, 1);
  if (!known) return known.error();
  if (!known->job || known->job->digest == job->rule.digest) return job;
  session.warn(cat("config_differs: the schedulers run job ", quoted(job->rule.name), " by ",
                   quoted(known->job->schedule), ", not by ", quoted(job->rule.schedule),
                   " as this file says; that is left as it is"));
  auto rule = api::rule_of(job->rule.name, *known->job, [&](const std::string& zone) {
    return app::find_zone(zone, session.environment());
  });
  if (!rule) return rule.error();
  job->rule = std::move(*rule);
  return job;
}

}  // namespace stint::cli
