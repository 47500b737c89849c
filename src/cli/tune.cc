// stint tune
#include "report/tune.h"

#include <array>

#include "api/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/cron_jobs.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "os/files.h"
#include "report/runs.h"

namespace stint::cli {
namespace {

constexpr std::size_t kMostRuns = 1000;
constexpr std::size_t kBins = 12;

void add_slots(const api::JobHistory& history, report::TuneInput& input) {
  for (const core::EndedSlot& slot : history.ended) {
    const bool ran = slot.state == core::SlotState::Ran || slot.state == core::SlotState::Failed;
    const bool lost = slot.state == core::SlotState::Lost;
    if ((!ran && !lost) || !slot.started_at || !slot.ended_at) continue;
    input.runs.push_back(
        {.length = std::max(Millis(0), *slot.ended_at - *slot.started_at), .clean = ran});
  }
}

std::optional<Millis> interval_of(const core::JobRule& rule, WallTime now) {
  const auto first =
      core::next_time(rule.expression, rule.zone, core::whole_seconds(now), core::Bound::Exclusive);
  if (!first) return std::nullopt;
  const auto second =
      core::next_time(rule.expression, rule.zone, first->instant, core::Bound::Exclusive);
  if (!second) return std::nullopt;
  return second->instant - first->instant;
}

struct TuneAsked {
  std::string name;
  report::TuneInput input;
};

// A job of the store, or else a resource.
Result<TuneAsked> gather(Session& session) {
  TuneAsked out{.name = session.words().operands().front(), .input = {}};
  std::optional<schedule::JobConfig> configured;
  if (auto jobs = load_jobs(session); jobs) {
    if (auto job = find_job(std::move(*jobs), out.name); job) configured = std::move(*job);
  } else if (session.words().has("--file")) {
    return jobs.error();
  }
  auto opened = session.open();
  if (!opened) return opened.error();
  auto history = (*opened)->slots().history(out.name, kMostRuns);
  if (!history) return history.error();
  std::string resource = out.name;
  if (history->job) {
    add_slots(*history, out.input);
    if (!history->ended.empty()) resource = history->ended.front().resource;
  } else {
    auto name = ResourceName::parse(out.name);
    if (!name) return name.error();
    auto grants = (*opened)->leases().history(*name, kMostRuns);
    if (!grants) return grants.error();
    report::add_grants(*grants, out.input);
    auto lease = (*opened)->leases().get(*name);
    if (lease && lease->ttl.count() > 0) out.input.ttl = lease->ttl;
  }
  if (configured) {
    out.input.ttl = configured->terms.ttl;
    out.input.interval = interval_of(configured->rule, session.clock().wall());
    out.input.backfill = configured->rule.max_backfill;
  }
  auto ttl = session.duration("--ttl", out.input.ttl);
  if (!ttl) return ttl.error();
  out.input.ttl = *ttl;
  constexpr std::size_t kAllKept = 100'000;
  if (auto ok = report::add_measures((*opened)->events(), resource, kAllKept, out.input); !ok) {
    return ok.error();
  }
  return out;
}

void print_report(Session& session, const TuneAsked& asked, const report::TuneReport& report,
                  const std::vector<report::Bin>& bins) {
  session.print(cat(printable(asked.name), ": ", report.count, " runs"));
  if (report.advised.ttl.count() > 0) {
    session.print(cat("p50 ", rough_duration(report.p50), ", p95 ", rough_duration(report.p95),
                      ", p99 ", rough_duration(report.p99), ", worst ",
                      rough_duration(report.worst)));
    session.print(cat("least slack of a renewal: ",
                      report.least_slack ? rough_duration(*report.least_slack) : "none measured",
                      "; runs with a suspend: ", report.suspends));
    for (const std::string& line : report::histogram_lines(bins, 80)) session.print(line);
    const auto line = [&](std::string_view what, const report::Replay& replay) {
      session.print(cat(what, " ttl ", format_duration(replay.ttl), ": ", replay.lost,
                        " would have lost their lease without renewal, ", replay.waiting,
                        " kept the next one waiting"));
    };
    line("present", report.present);
    line("advised", report.advised);
    session.print(cat("with renewal (run, jobs): ttl ", format_duration(report.renewed_ttl),
                      ", heartbeat ", format_duration(report.heartbeat)));
    if (report.backfill) session.print(cat("max_backfill: ", *report.backfill));
  }
  for (const std::string& flag : report.flags) session.print(cat("! ", flag));
}

int tune_command(Session& session) {
  auto asked = gather(session);
  if (!asked) return session.fail(asked.error());
  const report::TuneReport report = report::tune(asked->input);
  const std::vector<report::Bin> bins = report::histogram(asked->input.runs, kBins);
  if (const auto path = session.words().value("--svg")) {
    const auto written = os::write_file(*path, report::histogram_svg(asked->name, bins, report),
                                        os::Durability::Unsynced);
    if (!written) return session.fail(written.error());
  }
  if (session.json()) {
    session.print(api::to_json(report::tune_fields(asked->name, asked->input, report)));
  } else {
    print_report(session, *asked, report, bins);
  }
  return report.count == 0 ? kNothing : kDone;
}

constexpr std::array<Option, 3> kTuneOptions = {
    {{"--ttl", "D", "the present setting (default: the job's, or the lease's last one)"},
     {"--svg", "FILE", "draw the histogram into this file"},
     {"--file", "FILE", "the jobs (default: ./stint.toml)"}}};
constexpr std::array<std::string_view, 2> kTuneExamples = {"stint tune nightly --svg nightly.svg",
                                                           "stint tune blog-repo --ttl 6m --json"};

}  // namespace

const Command kTune = {
    .name = "tune",
    .operands = "RESOURCE|JOB",
    .summary = "how long the runs took, and which ttl, heartbeat and max_backfill suit them",
    .details =
        "Reads the recorded runs (of a job: its slots; of a resource: its grants) and advises a "
        "ttl: for work that does not renew 1.5 to 2 times the worst run that ended by itself; for "
        "run and jobs, which renew every third of it, the shorter p95 plus two heartbeats. Both "
        "the present and the advised setting are replayed against the recorded runs: how many "
        "would have lost their lease, and how many kept the next one waiting. Nothing is changed. "
        "Exit 3: nothing is recorded.",
    .examples = kTuneExamples,
    .options = kTuneOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = tune_command,
};

}  // namespace stint::cli
