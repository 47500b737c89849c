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
// The job that the second operand names, with its rule loaded now.
Result<schedule::JobConfig> operand_job(Session& session);

}  // namespace stint::cli
