// What the verbs of `stint cron` share: the jobs of the file, and one of them by its name.
#pragma once

#include <optional>
#include <string>

#include "cli/session.h"
#include "schedule/config.h"

namespace stint::cli {

struct Jobs {
  std::string path;
  schedule::Config config;
};

// Loads the file (given, --file, or where it is looked for); its store counts from now on.
Result<Jobs> load_jobs(Session& session, const std::optional<std::string>& given = {});
Result<schedule::JobConfig> find_job(Jobs jobs, const std::string& name);
// The job that the second operand names. It counts as loaded before any other: what the store knows
// of a job's schedule is changed by schedulers alone.
Result<schedule::JobConfig> operand_job(Session& session);
// The same, with the schedule that the store knows, for orders that need no more than the name.
Result<schedule::JobConfig> ordered_job(Session& session);

}  // namespace stint::cli
