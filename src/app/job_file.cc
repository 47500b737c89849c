#include "app/job_file.h"

#include <map>

#include "app/state_files.h"
#include "app/zones.h"
#include "base/text.h"
#include "guard/targets.h"
#include "os/files.h"

namespace stint::app {

namespace {

constexpr const char* kHere = "stint.toml";

}  // namespace

std::string own_job_file(const Environment& environment) {
  auto config = config_file(environment);
  return config ? cat(os::parent_of(*config), "/", kHere) : std::string();
}

Result<JobFile> find_job_file(const Environment& environment,
                              const std::optional<std::string>& given) {
  if (given) return JobFile{.path = os::absolute(*given)};
  const std::string also = own_job_file(environment);
  if (os::exists(kHere)) {
    const std::string here = os::absolute(kHere);
    return JobFile{.path = here, .found = here != also};
  }
  if (!also.empty() && os::exists(also)) return JobFile{.path = also};
  return invalid(cat("there is no ", kHere, " here", also.empty() ? "" : cat(" and no ", also),
                     "; name the file: stint cron FILE, or --file FILE at the other verbs"));
}

namespace {

// Which kinds of target there are is not the schedule's to know.
void check_seals(schedule::Config& config, const std::string& name) {
  std::erase_if(config.jobs, [&](const schedule::JobConfig& job) {
    for (const std::string& seal : job.seal) {
      const auto target = guard::parse_target(seal, "/");
      if (target) continue;
      config.problems.push_back(
          invalid(cat(name, ": job ", quoted(job.rule.name), ": seal: ", target.error().message)));
      return true;
    }
    return false;
  });
}

}  // namespace

Result<schedule::Config> read_jobs(const Environment& environment, const std::string& text,
                                   const std::string& name) {
  std::map<std::string, core::Zone> known;  // many jobs, few zones
  auto config =
      schedule::parse_config(text, name, [&](const std::string& zone) -> Result<core::Zone> {
        if (const auto found = known.find(zone); found != known.end()) return found->second;
        auto loaded = find_zone(zone, environment);
        if (loaded) known.emplace(zone, *loaded);
        return loaded;
      });
  if (config) check_seals(*config, name);
  return config;
}

Result<schedule::Config> load_job_file(const Environment& environment, const std::string& path) {
  auto text = os::read_file(path);
  if (!text) return invalid(cat("the jobs cannot be read: ", text.error().message));
  return read_jobs(environment, *text, path);
}

}  // namespace stint::app
