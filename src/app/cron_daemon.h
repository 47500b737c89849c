// `stint cron`: one scheduler, the processes that run its jobs, signals, and the file that is
// loaded again on SIGHUP. Each running job is a process of its own (`stint cron run`), with the
// production holder in it: its tree ends with its lease, whatever becomes of this one.   G7
#pragma once

#include <functional>
#include <string>

#include "api/events.h"
#include "api/slots.h"
#include "base/random.h"
#include "os/signals.h"
#include "schedule/scheduler.h"

namespace stint::app {

struct CronRequest {
  std::string id;  // of the scheduler
  bool once = false;
  Millis drain{30'000};
  // Loads the file; called at the start and for each SIGHUP.
  std::function<Result<schedule::Config>()> load;
  // argv and environment of the process that runs a slot.
  std::function<std::vector<std::string>(const schedule::JobConfig&, const core::Slot&)> argv;
  std::function<std::vector<std::string>(const schedule::JobConfig&)> environment;
  std::function<void(const std::string&)> say;
  // Makes the queues of the file, and looks after those of the store; both may be empty.
  std::function<Status(const std::vector<api::QueueConfig>&)> declare = {};
  // The janitor's step: when to call it again.
  std::function<Millis()> tend = {};
};

struct CronEnd {
  int failures = 0;       // runs that ended with another exit code than 0
  bool problems = false;  // jobs of the file that were left out
};

Result<CronEnd> run_cron(api::Slots& slots, api::Events& events, const Clock& clock,
                         os::Signals& signals, const CronRequest& request);

}  // namespace stint::app
