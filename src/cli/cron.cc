// stint cron: its verbs in one table.
#include "cli/cron.h"

#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"

namespace stint::cli {
namespace {

struct Verb {
  std::string_view name;
  std::string_view usage;
  int (*run)(Session& session);
  std::size_t operands;  // with its own name
};
constexpr std::array<Verb, 1> kVerbs = {{{"next", "stint cron next 'EXPR'", cron_next, 2}}};

int cron_command(Session& session) {
  const auto& operands = session.words().operands();
  std::string usages;
  for (const Verb& verb : kVerbs) {
    usages += cat(usages.empty() ? "" : "; ", verb.usage);
    if (operands.front() != verb.name) continue;
    if (operands.size() == verb.operands) return verb.run(session);
    return session.fail(invalid(cat(operands.size() < verb.operands
                                        ? "something is missing: "
                                        : "too many words (is the expression in quotes?): ",
                                    verb.usage)));
  }
  return session.fail(
      invalid(cat("there is no stint cron ", quoted(operands.front()), "; ", usages)));
}

constexpr std::array<Option, 5> kOptions = {{
    {"--tz", "ZONE",
     "next: the clock that the expression means, as Europe/Berlin (default: UTC; CRON_TZ= in the "
     "expression counts before it)"},
    {"--after", "TIME", "next: from this time on, as 2026-11-15T06:45:00+01:00 (default: now)"},
    {"--inclusive", "", "next: the time of --after itself counts too"},
    {"--previous", "", "next: go back from there instead"},
    {"-n", "N", "next: so many times (default: 5)"},
}};
constexpr std::array<std::string_view, 4> kExamples = {
    "stint cron next '30 6 * * mon-fri' --tz Europe/Berlin -n 5",
    "stint cron next '0 9 LW * *' --after 2026-11-15T00:00:00Z",
    "stint cron next 'CRON_TZ=America/New_York 30 2 * * *' --after 2027-03-14T00:00:00-05:00",
    "stint cron next '*/15 * * * *' --previous -n 3 --json"};

}  // namespace

const Command kCron = {
    .name = "cron",
    .operands = "next 'EXPR'",
    .summary = "when a cron expression fires",
    .details =
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
    .examples = kExamples,
    .options = kOptions,
    .least_operands = 1,
    .most_operands = 16,  // an expression without its quotes is told as such
    .runs_command = false,
    .run = cron_command,
};

}  // namespace stint::cli
