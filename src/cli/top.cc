// stint top
#include "app/top.h"

#include <array>

#include "api/json.h"
#include "app/zones.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "os/terminal.h"

namespace stint::cli {
namespace {

constexpr std::size_t kPlainColumns = 120;
constexpr std::size_t kPlainEvents = 10;
constexpr std::size_t kPlainPaneLines = 1000;

// One look, for pipes and files.
int print_once(Session& session, const report::TopFacts& facts) {
  const std::size_t rows = report::rows_for(facts.leases.size());
  for (const std::string& line :
       report::top_screen(facts, {}, kPlainColumns, rows, report::Look::Text)) {
    session.print(line.substr(0, line.find_last_not_of(' ') + 1));
  }
  for (const auto& [pane, some] : {std::pair{report::TopPane::Jobs, !facts.jobs.empty()},
                                   std::pair{report::TopPane::Queues, !facts.queues.empty()}}) {
    if (!some) continue;
    session.print(cat(" ", report::title_of(pane)));
    for (const std::string& line : report::pane_lines(facts, pane, kPlainPaneLines)) {
      session.print(line);
    }
  }
  return kDone;
}

int top_command(Session& session) {
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto ours = session.settings();
  if (!ours) return session.fail(ours.error());
  const auto& operands = session.words().operands();
  const app::TopRun run{
      .prefix = operands.empty() ? "" : operands.front(),
      .store = (*ours)->store_url.printable,
      .look = session.strong("x") == "x" ? report::Look::Plain : report::Look::Colours,
      .find_zone = [&session](const std::string& name) {
        return app::find_zone(name, session.environment());
      }};
  if (!session.json() && os::prints_to_terminal() && os::reads_from_terminal()) {
    auto done = app::fill_terminal(**opened, session.clock(), run);
    return done ? static_cast<int>(kDone) : session.fail(done.error());
  }
  auto facts = app::look_at(**opened, session.clock(), run,
                            {.events = kPlainEvents, .jobs = true, .queues = true});
  if (!facts) return session.fail(facts.error());
  if (session.json()) {
    session.print(api::to_json(facts->leases));
    return kDone;
  }
  return print_once(session, *facts);
}

constexpr std::array<std::string_view, 2> kTopExamples = {"stint top", "stint top site/a/"};

}  // namespace

const Command kTop = {
    .name = "top",
    .operands = "[PREFIX]",
    .summary = "who holds what, live, in the whole terminal",
    .details =
        "Held leases first; the bar shrinks to the expiry and grows with each renewal. ! and red: "
        "alive, but no progress for two ttls. Yellow: its renewal is late. Below stand the newest "
        "events, or the history of the chosen lease. Keys: arrows, j, k, PgUp, PgDn, Home, End "
        "move; Enter shows the history; Tab goes on to what was refused, to the jobs with their "
        "slots (# ran, x failed, - skipped, ? nobody knows, > runs, o due) and to the queues; / "
        "filters by name, owner or note; Esc goes back; q quits. Where there is no terminal it "
        "prints one look as plain text; with --json the leases, as ls does.",
    .examples = kTopExamples,
    .options = {},
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = top_command,
};

}  // namespace stint::cli
