#include "app/top.h"

#include <csignal>

#include "api/slots_json.h"
#include "app/listing.h"
#include "base/text.h"
#include "os/pause.h"
#include "os/signals.h"
#include "os/terminal.h"
#include "schedule/listing.h"

namespace stint::app {
namespace {

constexpr Millis kLookEvery{1000};
constexpr std::size_t kEvents = 12;
constexpr std::size_t kSearchedForRefusals = 300;
constexpr std::size_t kMostJobs = 40;
constexpr std::size_t kSlotsOfAJob = 60;
constexpr std::size_t kGrants = 12;

class Top {
 public:
  Top(Opened& opened, const Clock& clock, const TopRun& run, os::Terminal& terminal)
      : opened_(opened), clock_(clock), run_(run), terminal_(terminal) {}

  Status run(os::Signals& signals) {
    look();
    while (true) {
      draw();
      const auto ready = os::wait_readable({terminal_.fd(), signals.fd()}, next_look_);
      if (ready[1] && ended(signals)) return {};
      if (ready[0]) {
        const std::string keys = terminal_.keys();
        if (keys.empty()) return {};  // the terminal is gone
        const std::size_t page = report::top_page(terminal_.size().rows);
        const report::TopPane before = state_.pane();
        if (state_.press(keys, facts_, page) == report::TopState::Wish::Quit) return {};
        if (state_.pane() != before) look();
        look_back();
      }
      if (clock_.mono() >= next_look_) look();
    }
  }

 private:
  static bool ended(os::Signals& signals) {
    bool out = false;
    while (const auto received = signals.take()) {
      out = out || received->number == SIGINT || received->number == SIGTERM ||
            received->number == SIGHUP;
    }
    return out;
  }

  // What cannot be read now stays as it was, and the screen says so.
  void look() {
    const report::TopPane pane = state_.pane();
    const bool refused = pane == report::TopPane::Refused;
    auto facts = look_at(opened_, clock_, run_,
                         {.events = refused ? kSearchedForRefusals : kEvents,
                          .jobs = pane == report::TopPane::Jobs,
                          .queues = pane == report::TopPane::Queues});
    if (facts) {
      facts_ = std::move(*facts);
    } else {
      facts_.store = run_.store;
      facts_.now = clock_.wall();
      facts_.trouble = facts.error().message;
    }
    look_back();
    next_look_ = clock_.mono() + kLookEvery;
  }

  void look_back() {
    facts_.history.clear();
    if (!state_.looking()) return;
    const auto name = ResourceName::parse(state_.selected(facts_));
    if (!name) return;
    auto history = opened_.leases().history(*name, kGrants);
    if (history) facts_.history = std::move(*history);
  }

  void draw() {
    const os::TerminalSize size = terminal_.size();
    std::string out = "\033[H";
    bool first = true;
    for (const std::string& line :
         report::top_screen(facts_, state_, size.columns, size.rows, run_.look)) {
      if (!first) out += "\r\n";
      first = false;
      out += cat(line, "\033[K");
    }
    if (out != drawn_) (void)terminal_.write(out);
    drawn_ = std::move(out);
  }

  Opened& opened_;
  const Clock& clock_;
  const TopRun& run_;
  os::Terminal& terminal_;
  report::TopState state_;
  report::TopFacts facts_;
  MonoTime next_look_{};
  std::string drawn_;
};

Result<report::TopJob> look_at_job(Opened& opened, const TopRun& run, const api::NamedJob& one,
                                   WallTime now) {
  report::TopJob out{.name = one.name,
                     .schedule = one.job.schedule,
                     .paused = one.job.paused,
                     .next = std::nullopt,
                     .slots = {}};
  auto history = opened.slots().history(one.name, kSlotsOfAJob);
  if (!history) return history.error();
  auto slots = schedule::list_slots(one.name, *history, kSlotsOfAJob, run.find_zone);
  if (!slots) return slots.error();
  for (const api::SlotView& slot : *slots) out.slots.push_back(slot.state);
  auto rule = api::rule_of(one.name, one.job, run.find_zone);
  out.readable = rule.has_value();
  if (!rule) return out;
  const auto next = core::next_time(rule->expression, rule->zone, core::whole_seconds(now),
                                    core::Bound::Exclusive);
  if (next) out.next = core::wall_of(next->instant);
  return out;
}

Status look_at_jobs(Opened& opened, const TopRun& run, report::TopFacts& out) {
  auto jobs = opened.slots().jobs();
  if (!jobs) return jobs.error();
  auto now = opened.slots().now();
  if (!now) return now.error();
  for (const api::NamedJob& one : *jobs) {
    if (!one.name.starts_with(run.prefix)) continue;
    if (out.jobs.size() == kMostJobs) {
      ++out.more_jobs;
      continue;
    }
    auto job = look_at_job(opened, run, one, *now);
    if (!job) return job.error();
    out.jobs.push_back(std::move(*job));
  }
  return {};
}

Status look_at_queues(Opened& opened, const TopRun& run, report::TopFacts& out) {
  auto queue = opened.queue();
  if (!queue) return queue.error();
  auto all = (*queue)->queues();
  if (!all) return all.error();
  for (const api::QueueConfig& one : *all) {
    if (!one.name.text().starts_with(run.prefix)) continue;
    auto counts = (*queue)->count(one.name);
    if (!counts) return counts.error();
    out.queues.push_back({one.name.text(), *counts});
  }
  return {};
}

}  // namespace

Result<report::TopFacts> look_at(Opened& opened, const Clock& clock, const TopRun& run,
                                 const TopWants& wants) {
  report::TopFacts out;
  out.store = run.store;
  auto leases = all_leases(opened.leases(), run.prefix);
  if (!leases) return leases.error();
  out.leases = std::move(*leases);
  auto lines = opened.events().list(
      {.after = "", .prefix = run.prefix, .limit = wants.events, .newest = true});
  if (!lines) return lines.error();
  out.events = std::move(*lines);
  // A key that may see leases may not see these.
  if (wants.jobs) {
    if (auto seen = look_at_jobs(opened, run, out); !seen) out.jobs_trouble = seen.error().message;
  }
  if (wants.queues) {
    if (auto seen = look_at_queues(opened, run, out); !seen) {
      out.queues_trouble = seen.error().message;
    }
  }
  out.now = clock.wall();
  return out;
}

Status fill_terminal(Opened& opened, const Clock& clock, const TopRun& run) {
  auto signals = os::Signals::make();
  if (!signals) return signals.error();
  auto terminal = os::Terminal::take();
  if (!terminal) return terminal.error();
  return Top(opened, clock, run, *terminal).run(*signals);
}

}  // namespace stint::app
