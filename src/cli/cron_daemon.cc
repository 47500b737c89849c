// stint cron [FILE]: the scheduler.
#include "app/cron_daemon.h"

#include <unistd.h>

#include "app/job_file.h"
#include "base/text.h"
#include "cli/cron.h"
#include "cli/cron_jobs.h"
#include "cli/exit_codes.h"
#include "os/files.h"
#include "os/host.h"
#include "os/program.h"

namespace stint::cli {
namespace {

std::vector<std::string> runner_environment(Session& session, const std::string& id,
                                            const schedule::JobConfig& job) {
  auto values = session.environment().all();
  values["STINT_CRON_JOB"] = job.source;
  values["STINT_CRON_AS"] = id;
  // Whatever it came from: the same store, as this process found it.
  values.erase("STINT_STORE_FILE");
  const app::StoreUrl& url = (*session.settings())->store_url;
  std::string store = url.absolute();
  // Where all wait for one lock, a run waits for its turn.
  const bool one_lock = url.scheme == "sqlite" || url.scheme == "dir";
  if (one_lock && !url.options.contains("timeout")) {
    store += cat(store.find('?') == std::string::npos ? "?" : "&", "timeout=60s");
  }
  values["STINT_STORE"] = store;
  std::vector<std::string> out;
  for (const auto& [name, value] : values) out.push_back(cat(name, "=", value));
  return out;
}

std::vector<std::string> runner_words(const Session& session, const schedule::JobConfig& job,
                                      const core::Slot& slot) {
  std::vector<std::string> out = {os::own_program(),
                                  "cron",
                                  "run",
                                  "--slot",
                                  core::slot_key(job.rule.name, slot.at),
                                  "--attempt",
                                  std::to_string(slot.attempt)};
  if (session.quiet()) out.emplace_back("-q");
  if (session.words().has("-v")) out.emplace_back("-v");
  if (const auto owner = session.words().value("--owner")) out.push_back(cat("--owner=", *owner));
  out.emplace_back(job.rule.name);
  return out;
}

}  // namespace

int cron_daemon(Session& session, const std::optional<std::string>& file) {
  auto signals = os::Signals::make();
  if (!signals) return session.fail(signals.error());
  auto drain = session.duration("--drain", Millis(30'000));
  if (!drain) return session.fail(drain.error());
  auto first = load_jobs(session, file);
  if (!first) return session.fail(first.error());
  if (first->config.jobs.empty() && !first->config.problems.empty()) {
    return session.fail(first->config.problems.front());
  }
  if (first->config.jobs.empty()) {
    session.report(cat(first->path, " has no job: looking after the queues alone"));
  }
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  const std::string id =
      cat(os::host_name(), "-", ::getpid(), "-", session.random().id_hex().substr(0, 8));
  std::optional<schedule::Config> loaded = std::move(first->config);
  const app::CronRequest request{
      .id = id,
      .once = session.words().has("--once"),
      .drain = *drain,
      .load = [&, path = first->path]() -> Result<schedule::Config> {
        if (loaded) return *std::exchange(loaded, std::nullopt);
        return app::load_job_file(session.environment(), path);
      },
      .argv = [&](const schedule::JobConfig& job,
                  const core::Slot& slot) { return runner_words(session, job, slot); },
      .environment =
          [&](const schedule::JobConfig& job) { return runner_environment(session, id, job); },
      .say = [&](const std::string& line) { session.report(line); },
      .declare = [&](const std::vector<api::QueueConfig>& declared) -> Status {
        auto queue = (*opened)->queue();
        return queue ? api::declare_queues(**queue, declared) : Status(queue.error());
      },
      .tend =
          [&] {
            constexpr Millis kEvery{10'000};
            auto queue = (*opened)->queue();
            return queue ? api::tend_all(**queue, kEvery) : kEvery;
          }};
  auto end =
      app::run_cron((*opened)->slots(), (*opened)->events(), session.clock(), *signals, request);
  if (!end) return session.fail(end.error());
  if (end->problems) return kUsage;
  return request.once && end->failures > 0 ? kFailed : kDone;
}

}  // namespace stint::cli
