// stint slots, stint explain.
#include <array>

#include "api/json.h"
#include "app/zones.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/cron_jobs.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "cli/table.h"
#include "os/files.h"
#include "report/pictures.h"
#include "schedule/listing.h"

namespace stint::cli {
namespace {

Result<std::size_t> count_of(const Session& session, std::size_t fallback) {
  const auto text = session.words().value("-n");
  if (!text) return fallback;
  constexpr std::uint64_t kMost = 100'000;
  const auto count = parse_digits(*text);
  if (!count || *count < 1 || *count > kMost) {
    return invalid(cat("-n ", quoted(*text), " is not a number from 1 to ", kMost));
  }
  return static_cast<std::size_t>(*count);
}

schedule::FindZone zones(Session& session) {
  return
      [&session](const std::string& name) { return app::find_zone(name, session.environment()); };
}

std::string moment(const std::optional<WallTime>& t) { return t ? format_utc(*t) : ""; }

void print_slots(Session& session, const std::vector<api::SlotView>& slots) {
  Table table({"SLOT", "AT", "TRY", "STATE", "OWNER", "TOKEN", "STARTED", "ENDED", "EXIT", ""});
  for (const api::SlotView& view : slots) {
    table.add({format_local(view.slot.nominal), format_utc(view.slot.at),
               std::to_string(view.slot.attempt), std::string(core::word(view.state)),
               printable(view.owner), view.token.issued() ? cat(view.token.number()) : "",
               moment(view.started_at), moment(view.ended_at),
               view.exit_code ? cat(*view.exit_code) : "", printable(view.cause)});
  }
  for (const std::string& line : table.lines()) session.print(line);
}

int slots_command(Session& session) {
  auto limit = count_of(session, 50);
  if (!limit) return session.fail(limit.error());
  // The file may name the store; without one the store is found as everywhere.
  if (session.words().has("--file")) {
    if (auto jobs = load_jobs(session); !jobs) return session.fail(jobs.error());
  } else {
    [[maybe_unused]] const bool found = load_jobs(session).has_value();
  }
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  const std::string& job = session.words().operands().front();
  auto history = (*opened)->slots().history(job, *limit);
  if (!history) return session.fail(history.error());
  auto slots = schedule::list_slots(job, *history, *limit, zones(session));
  if (!slots) return session.fail(slots.error());
  if (const auto path = session.words().value("--svg")) {
    const auto written =
        os::write_file(*path, report::slots_svg(job, *slots), os::Durability::Unsynced);
    if (!written) return session.fail(written.error());
  }
  if (session.json()) session.print(api::to_json(*slots));
  if (!history->job) {
    return session.nothing(cat("the store knows no job ", quoted(job)));
  }
  if (!session.json()) print_slots(session, *slots);
  if (history->job->paused) session.say(cat("job ", quoted(job), " is paused"));
  return kDone;
}

int explain_command(Session& session) {
  auto limit = count_of(session, 1000);
  if (!limit) return session.fail(limit.error());
  auto jobs = load_jobs(session);
  if (!jobs) return session.fail(jobs.error());
  auto job = find_job(std::move(*jobs), session.words().operands().front());
  if (!job) return session.fail(job.error());
  const auto text = session.words().value("--down");
  if (!text) {
    return session.fail(invalid("which outage? stint explain JOB --down 23:00..07:12"));
  }
  auto outage = schedule::parse_outage(*text, job->rule.zone, session.clock().wall());
  if (!outage) return session.fail(outage.error());
  const schedule::Foretold told = schedule::foretell(job->rule, *outage, *limit);
  std::vector<std::vector<api::JsonField>> rows;
  Table table({"SLOT", "AT", "WHAT"});
  std::size_t runs = 0;
  for (const api::SlotView& view : told.slots) {
    const bool due = view.state == core::SlotState::Due;
    runs += due ? 1U : 0U;
    const std::string what = due ? "runs" : std::string(core::word(view.state));
    const std::string at = format_utc(view.slot.at);
    table.add({format_local(view.slot.nominal), at, what});
    rows.push_back({{"job", view.job},
                    {"slot", format_local(view.slot.nominal)},
                    {"key", core::slot_key(view.job, view.slot.at)},
                    {"state", what},
                    {"backfill", view.slot.backfill}});
  }
  if (session.json()) {
    session.print(api::to_json(rows));
    return kDone;
  }
  if (told.left_out > 0) session.say(cat(told.left_out, " earlier ones are left out (-n)"));
  for (const std::string& line : table.lines()) session.print(line);
  session.say(cat("down from ", format_utc(outage->from), " to ", format_utc(outage->to), ": ",
                  runs, " would run (max_backfill ", job->rule.max_backfill, "), ",
                  told.slots.size() - runs + told.left_out, " would be recorded as skipped"));
  return kDone;
}

constexpr std::array<Option, 3> kSlotsOptions = {
    {{"-n", "N", "the newest N (default: 50)"},
     {"--svg", "FILE", "draw them into this file"},
     {"--file", "FILE", "the stint.toml that names the store (default: ./stint.toml)"}}};
constexpr std::array<Option, 3> kExplainOptions = {
    {{"--down", "A..B", "the outage: 23:00..07:12 on the job's clock, or two times with offset"},
     {"-n", "N", "at most N lines, the newest (default: 1000)"},
     {"--file", "FILE", "the jobs (default: ./stint.toml)"}}};
constexpr std::array<std::string_view, 2> kSlotsExamples = {"stint slots nightly",
                                                            "stint slots nightly -n 500 --json"};
constexpr std::array<std::string_view, 2> kExplainExamples = {
    "stint explain nightly --down 23:00..07:12",
    "stint explain nightly --down 2026-11-15T23:00:00Z..2026-11-16T07:12:00Z --json"};

}  // namespace

const Command kSlots = {
    .name = "slots",
    .operands = "JOB",
    .summary = "what became of a job's slots: ran, failed, skipped and why, lost",
    .details =
        "One line a slot, oldest first; dropped ones too, although they are recorded as ranges. "
        "States: due, claimed, starting, running; ran (exit code 0), failed, skipped_overlap (the "
        "job's own run before was still going on: OWNER and TOKEN name it), skipped_held (another "
        "holds the resource), skipped_stale (missed, beyond max_backfill), skipped_late (beyond "
        "start_deadline), skipped_paused, skipped_limit (no place under concurrency until a newer "
        "one came), lost (started, and nobody knows how it ended), quarantined (lost together with "
        "its scheduler twice). A skip is no failure. Exit 3: the store knows no such job.",
    .examples = kSlotsExamples,
    .options = kSlotsOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = slots_command,
};

const Command kExplain = {
    .name = "explain",
    .operands = "JOB --down A..B",
    .summary = "what a job would do after an outage: which slots run, which are skipped and why",
    .details =
        "Reads the file only: nothing is changed, and no store is asked. For trying out "
        "max_backfill, start_deadline and schedules before they are loaded.",
    .examples = kExplainExamples,
    .options = kExplainOptions,
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = explain_command,
};

}  // namespace stint::cli
