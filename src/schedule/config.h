// stint.toml: which jobs and queues there are. Checked when it is loaded, with line and column.
//
// What is wrong with the file as a whole is an error. What is wrong with one job is that job's
// problem: the others go on.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/queue.h"
#include "core/slots.h"
#include "holder/taking.h"

namespace stint::schedule {

struct JobConfig {
  core::JobRule rule;
  std::vector<std::string> command;
  std::vector<ResourceName> resources;  // the one to take, then those to take instead
  core::Terms terms;
  holder::HeldPolicy held;
  std::optional<Millis> progress_timeout;
  std::vector<std::string> seal;
  std::vector<std::pair<std::string, std::string>> env;
  std::string dir;
  std::string source;  // its table as TOML: what the process that runs it is given
};

struct Config {
  std::optional<std::string> store;
  std::size_t concurrency = 0;  // zero: no limit
  Millis stagger{1000};
  std::vector<JobConfig> jobs;
  std::vector<api::QueueConfig> queues;  // [queue.NAME]
  std::vector<Error> problems;           // of jobs that were left out
};

using FindZone = std::function<Result<core::Zone>(const std::string& name)>;

// `path` is for the messages: "stint.toml:3:12: ...".
Result<Config> parse_config(const std::string& text, const std::string& path,
                            const FindZone& find_zone);

// The tables [queue.NAME] alone, of any file that may have some.
Result<std::vector<api::QueueConfig>> parse_queues(const std::string& text,
                                                   const std::string& path);

}  // namespace stint::schedule
