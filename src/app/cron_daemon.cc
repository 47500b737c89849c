#include "app/cron_daemon.h"

#include <map>

#include "base/text.h"
#include "os/pause.h"
#include "os/worker.h"

namespace stint::app {
namespace {

// Between "end" and "end now" to the runs that are left when the drain time is over.
constexpr Millis kBeforeKill{15'000};
// Runs that are on their way to their start at the same time: two hundred that are due in one
// second would stand in each other's way at the store.
constexpr std::size_t kMostStarting = 8;

class Daemon {
 public:
  Daemon(api::Slots& slots, api::Events& events, const Clock& clock, os::Signals& signals,
         const CronRequest& request)
      : slots_(slots),
        clock_(clock),
        signals_(signals),
        request_(request),
        scheduler_(slots, events, clock, request.id,
                   {.launch = [this](const schedule::JobConfig& job,
                                     const core::Slot& slot) { return launch(job, slot); },
                    .say = request.say,
                    .may_launch = [this] { return starting_ < kMostStarting; }}) {}

  Result<CronEnd> go() {
    if (auto loaded = load(); !loaded) return loaded.error();
    // Registered before the first look. Without it what is asked for by hand is seen by the sweep.
    if (auto watch = slots_.watch(); watch) bell_ = std::move(*watch);
    while (true) {
      const MonoTime next = std::min(scheduler_.step(), tend());
      if (draining() ? workers_.empty() : request_.once && scheduler_.quiet()) return end_;
      wait(next);
      on_signals();
      on_workers();
      on_drain();
    }
  }

 private:
  struct Run {
    os::Worker worker;
    bool starting = true;
  };
  void ready(Run& run) {
    if (std::exchange(run.starting, false)) --starting_;
  }

  bool draining() const { return drain_until_.has_value(); }

  // No scheduler leads: each looks after the queues, now and then.
  MonoTime tend() {
    if (!request_.tend || draining()) return MonoTime::max();
    if (clock_.mono() >= tend_at_) {
      const Millis next = request_.tend();
      tend_at_ = clock_.mono() + next;
    }
    return tend_at_;
  }

  Status load() {
    auto config = request_.load();
    if (!config) return config.error();
    end_.problems = !config->problems.empty();
    for (const Error& problem : config->problems) {
      request_.say(cat(problem.message, "; this job is left out"));
    }
    if (request_.declare && !config->queues.empty()) {
      if (auto made = request_.declare(config->queues); !made) return made;
    }
    return scheduler_.load(std::move(*config));
  }

  Status launch(const schedule::JobConfig& job, const core::Slot& slot) {
    auto worker = os::Worker::start({.argv = request_.argv(job, slot),
                                     .environment = request_.environment(job),
                                     .signal_mask = signals_.original_mask()});
    if (!worker) return worker.error();
    workers_.insert_or_assign(job.rule.name, Run{std::move(*worker)});
    ++starting_;
    return {};
  }

  void wait(MonoTime next) {
    std::vector<int> fds = {signals_.fd()};
    if (bell_) fds.push_back(bell_->fd());
    for (const auto& [job, run] : workers_) {
      fds.push_back(run.worker.fd());
      if (run.starting) fds.push_back(run.worker.ready_fd());
    }
    if (draining()) next = std::min(next, *drain_until_);
    const auto readable = os::wait_readable(fds, next);
    if (bell_ && readable[1]) {
      bell_->acknowledge();
      scheduler_.look_soon();
    }
    std::size_t at = bell_ ? 2 : 1;
    for (auto& [job, run] : workers_) {
      ++at;  // its end
      if (run.starting && readable[at++]) ready(run);
    }
  }

  void on_signals() {
    while (const auto received = signals_.take()) {
      const int n = received->number;
      if (n == SIGHUP) {
        reload();
      } else if (n == SIGTERM || n == SIGINT || n == SIGQUIT) {
        end_now_or_soon();
      }
    }
  }

  // A file that cannot be read changes nothing.
  void reload() {
    if (draining()) return;
    if (auto loaded = load(); loaded) {
      request_.say("loaded again");
    } else {
      request_.say(cat(loaded.error().message, "; the jobs stay as they were"));
    }
  }

  void end_now_or_soon() {
    scheduler_.stop();
    if (!draining()) {
      drain_until_ = clock_.mono() + request_.drain;
      // Those that wait, or are on their way: a run that has started does not mind it.
      for (const auto& [job, run] : workers_) {
        if (run.starting) run.worker.signal(SIGHUP);
      }
      if (!workers_.empty()) {
        request_.say(cat("ending: nothing more is started; ", workers_.size(),
                         " running job(s) have ", format_duration(request_.drain), " to end"));
      }
      return;
    }
    end_workers(true);
  }

  void on_drain() {
    if (!draining() || clock_.mono() < *drain_until_) return;
    end_workers(told_);
  }

  void end_workers(bool now) {
    for (const auto& [job, run] : workers_) {
      if (!told_) request_.say(cat("stopping ", quoted(job)));
      run.worker.signal(SIGTERM);
      // The second one is "at once".
      if (now) run.worker.signal(SIGINT);
    }
    told_ = true;
    drain_until_ = clock_.mono() + kBeforeKill;
  }

  void on_workers() {
    for (auto at = workers_.begin(); at != workers_.end();) {
      const os::Sighting seen = at->second.worker.look();
      if (seen.runs) {
        ++at;
        continue;
      }
      const std::string job = at->first;
      ready(at->second);
      at = workers_.erase(at);
      constexpr int kLeftIt = 128 + SIGHUP;  // before it could read the signal
      const bool left = draining() && seen.end && seen.end->code() == kLeftIt;
      if (!left && !(seen.end && seen.end->good())) {
        ++end_.failures;
        request_.say(seen.end ? cat("job ", quoted(job), " ended with exit code ", seen.end->code())
                              : cat("job ", quoted(job), " ended, and nobody saw how"));
      }
      scheduler_.finished(job);
    }
  }

  api::Slots& slots_;
  const Clock& clock_;
  os::Signals& signals_;
  const CronRequest& request_;
  schedule::Scheduler scheduler_;
  std::unique_ptr<Watch> bell_;
  std::map<std::string, Run> workers_;  // by job: none runs twice at once
  std::size_t starting_ = 0;
  std::optional<MonoTime> drain_until_;
  MonoTime tend_at_ = MonoTime::min();
  bool told_ = false;
  CronEnd end_;
};

}  // namespace

Result<CronEnd> run_cron(api::Slots& slots, api::Events& events, const Clock& clock,
                         os::Signals& signals, const CronRequest& request) {
  return Daemon(slots, events, clock, signals, request).go();
}

}  // namespace stint::app
