// stint events, watch: the ledger, as it stands and as it grows.
#include <array>
#include <cstdio>

#include "api/json.h"
#include "app/listing.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "report/top_screen.h"

namespace stint::cli {
namespace {

void print_event(Session& session, const api::Event& event) {
  session.print(session.json() ? api::to_json(event) : report::event_line(event));
}

std::string prefix_of(const Session& session) {
  const auto& operands = session.words().operands();
  return operands.empty() ? "" : operands.front();
}

int events_command(Session& session) {
  std::size_t limit = 1000;
  if (const auto text = session.words().value("--limit")) {
    const auto number = parse_digits(*text);
    if (!number || *number == 0 || *number > 1'000'000) {
      return session.fail(invalid("--limit is a number from 1 to 1000000"));
    }
    limit = *number;
  }
  const auto after = session.words().value("--after");
  if (after && !parse_digits(*after)) return session.fail(invalid("--after is an event's number"));
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto events = (*opened)->events().list({.after = after.value_or(""),
                                          .prefix = prefix_of(session),
                                          .limit = limit,
                                          .newest = !after});
  if (!events) return session.fail(events.error());
  for (const api::Event& event : *events) print_event(session, event);
  return kDone;
}

int watch_command(Session& session) {
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  const auto after = session.words().value("--after");
  if (after && !parse_digits(*after)) return session.fail(invalid("--after is an event's number"));
  auto done = app::follow((*opened)->events(), prefix_of(session), after.value_or(""),
                          [&](const api::Event& event) {
                            print_event(session, event);
                            return std::fflush(stdout) == 0;
                          });
  if (!done) return session.fail(done.error());
  return kDone;
}

constexpr std::array<Option, 2> kEventsOptions = {{
    {"--limit", "N", "at most this many, the newest (default 1000)"},
    {"--after", "NUMBER", "those after this event, the oldest first"},
}};
constexpr std::array<Option, 1> kWatchOptions = {{{"--after", "NUMBER", "go on after this event"}}};
constexpr std::array<std::string_view, 2> kEventsExamples = {"stint events blog-repo",
                                                             "stint events --json --limit 20"};
constexpr std::array<std::string_view, 2> kWatchExamples = {"stint watch",
                                                            "stint watch site/a/ --json"};

}  // namespace

const Command kEvents = {
    .name = "events",
    .operands = "[PREFIX]",
    .summary = "print the ledger: every change of ownership and every refusal",
    .details = "Oldest first. With --json one object a line.",
    .examples = kEventsExamples,
    .options = kEventsOptions,
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = events_command,
};

const Command kWatch = {
    .name = "watch",
    .operands = "[PREFIX]",
    .summary = "print events as they happen, until interrupted",
    .details = "With --json one object a line.",
    .examples = kWatchExamples,
    .options = kWatchOptions,
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = watch_command,
};

}  // namespace stint::cli
