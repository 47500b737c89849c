// Where stint.toml is, and what is in it.
#pragma once

#include <optional>
#include <string>

#include "app/environment.h"
#include "schedule/config.h"

namespace stint::app {

struct JobFile {
  std::string path;
  // In the working folder, without having been named: others may have written it.
  bool found = false;
};

// The one that is given; else ./stint.toml, else $XDG_CONFIG_HOME/stint/stint.toml.
Result<JobFile> find_job_file(const Environment& environment,
                              const std::optional<std::string>& given);
// $XDG_CONFIG_HOME/stint/stint.toml; empty: there is no such folder.
std::string own_job_file(const Environment& environment);
Result<schedule::Config> load_job_file(const Environment& environment, const std::string& path);
// The same for a text: `stint cron` gives a job to the process that runs it.
Result<schedule::Config> read_jobs(const Environment& environment, const std::string& text,
                                   const std::string& name);

}  // namespace stint::app
