// stint cron: its verbs in one table.
#include "cli/cron.h"

#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"

namespace stint::cli {
namespace {

struct CronVerb {
  std::string_view name;
  std::string_view usage;
  int (*run)(Session& session);
  std::size_t least;  // operands, with its own name
  std::size_t most;
};
constexpr std::array<CronVerb, 6> kCronVerbs = {{
    {"next", "stint cron next 'EXPR'", cron_next, 2, 2},
    {"check", "stint cron check [FILE]", cron_check, 1, 2},
    {"run", "stint cron run JOB --slot T", cron_run, 2, 2},
    {"pause", "stint cron pause JOB", cron_pause, 2, 2},
    {"resume", "stint cron resume JOB", cron_resume, 2, 2},
    {"trigger", "stint cron trigger JOB", cron_trigger, 2, 2},
}};

int cron_command(Session& session) {
  const auto& operands = session.words().operands();
  if (operands.empty()) return cron_daemon(session, std::nullopt);
  std::string usages = "stint cron [FILE]";
  for (const CronVerb& verb : kCronVerbs) {
    usages += cat("; ", verb.usage);
    if (operands.front() != verb.name) continue;
    if (operands.size() >= verb.least && operands.size() <= verb.most) return verb.run(session);
    return session.fail(invalid(cat(operands.size() < verb.least
                                        ? "something is missing: "
                                        : "too many words (is the expression in quotes?): ",
                                    verb.usage)));
  }
  if (operands.size() == 1) return cron_daemon(session, operands.front());
  return session.fail(
      invalid(cat("there is no stint cron ", quoted(operands.front()), "; ", usages)));
}

constexpr std::array<Option, 10> kCronOptions = {{
    {"--once", "", "do what is due, wait for it to end, and exit"},
    {"--drain", "D", "after SIGTERM: how long running jobs have to end (default: 30s)"},
    {"--file", "FILE", "the jobs, for the verbs (default: ./stint.toml)"},
    {"--slot", "T", "run: the slot, as an instant, a slot's key or the job's own clock"},
    {"--attempt", "N", "run: which attempt; as the scheduler counts them"},
    {"--tz", "ZONE",
     "next: the clock that the expression means, as Europe/Berlin (default: UTC; CRON_TZ= in the "
     "expression counts before it)"},
    {"--after", "TIME", "next: from this time on, as 2026-11-15T06:45:00+01:00 (default: now)"},
    {"--inclusive", "", "next: the time of --after itself counts too"},
    {"--previous", "", "next: go back from there instead"},
    {"-n", "N", "next: so many times (default: 5)"},
}};
constexpr std::array<std::string_view, 7> kCronExamples = {
    "stint cron                                    # the jobs of ./stint.toml, until SIGTERM",
    "stint cron --once jobs.toml                   # from system cron or a systemd timer",
    "stint cron check jobs.toml",
    "stint cron pause nightly",
    "stint cron run nightly --slot 2026-11-15T06:45:00Z",
    "stint cron next '30 6 * * mon-fri' --tz Europe/Berlin -n 5",
    "stint cron next '*/15 * * * *' --previous -n 3 --json"};

}  // namespace

const Command kCron = {
    .name = "cron",
    .operands = "[FILE] | check|next|run|pause|resume|trigger ...",
    .summary = "run jobs on a schedule: each slot once, never two runs of a job at a time",
    .details =
        "Runs the jobs of a stint.toml (FILE, else ./stint.toml, else "
        "$XDG_CONFIG_HOME/stint/stint.toml). Any number of schedulers may run on one store: each "
        "slot is decided once and each attempt started at most once. A slot that comes while the "
        "run before goes on is recorded as skipped_overlap. After an outage the newest "
        "max_backfill "
        "missed slots run, one after the other; the others are recorded. SIGHUP loads the file "
        "again. SIGTERM: nothing more is started, running jobs get --drain to end, then they are "
        "stopped; a second SIGTERM stops them now.\n"
        "check reads the file and says what is wrong, with line and column. pause and resume stop "
        "a "
        "job and let it go on, for all schedulers; what comes due meanwhile is recorded and not "
        "run. trigger asks for a run now, by hand. run is for those who keep their own scheduler: "
        "it runs one slot that is due, unless it has ended. See 'stint help slots', "
        "docs/guides/schedules.md.\n\n"
        "Expressions. "
        "Five fields (minutes hours day-of-month month day-of-week), or six with seconds in front. "
        "Numbers, names, lists (1,15), ranges (mon-fri, also wrapping: 22-4), steps (*/10, 5/10), "
        "? for *; days: L, LW, L-3, 15W, 5L, fri#3. Both day fields given: either counts. @yearly, "
        "@monthly, @weekly, @daily, @hourly, @every_minute, @every_second, @every 45m. "
        "CRON_TZ=ZONE "
        "in front names the zone.\n"
        "Summer time: what falls into the hour that is left out runs once, at the first instant "
        "after it. In the hour that comes twice, an expression with *, / or - in seconds, minutes "
        "or hours runs in both, another only the first time.\n"
        "next prints one time a line, with its offset. 'never' and exit 1: it does not fire. Exit "
        "2: it is wrong, and the message names the field.",
    .examples = kCronExamples,
    .options = kCronOptions,
    .least_operands = 0,
    .most_operands = 16,  // an expression without its quotes is told as such
    .runs_command = false,
    .run = cron_command,
    .verbs = "next check run pause resume trigger",
};

}  // namespace stint::cli
