// stint ls, show, history: what stands in the store.
#include <array>

#include "api/json.h"
#include "app/listing.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "cli/table.h"
#include "os/files.h"
#include "report/pictures.h"

namespace stint::cli {
namespace {

std::string left(const std::optional<Millis>& d) { return d ? rough_duration(*d) : "-"; }

int ls_command(Session& session) {
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  const auto& operands = session.words().operands();
  auto leases = app::all_leases((*opened)->leases(), operands.empty() ? "" : operands.front());
  if (!leases) return session.fail(leases.error());
  if (session.words().has("--held")) {
    std::erase_if(*leases, [](const api::Lease& lease) { return !lease.held; });
  }
  if (session.json()) {
    session.print(api::to_json(*leases));
    return kDone;
  }
  if (leases->empty()) {
    session.say(session.words().has("--held")
                    ? "nobody holds anything"
                    : "nothing there yet; try: stint run my-resource -- echo hello");
    return kDone;
  }
  Table table({"RESOURCE", "STATE", "TOKEN", "OWNER", "LEFT", "NOTE", "PROGRESS"});
  for (const api::Lease& lease : *leases) {
    table.add({printable(lease.resource), std::string(core::word(lease.state)),
               cat(lease.token.number()), or_dash(lease.owner.text()), left(lease.remaining),
               or_dash(lease.held ? lease.note : ""), or_dash(lease.progress)});
  }
  session.print_table(table);
  return kDone;
}

// What every later run seals first.
Table targets_table(const std::vector<api::SealedTarget>& targets) {
  Table table({"TARGET", "TOKEN", "LAST SEALED", "REMEMBERED SINCE"});
  for (const api::SealedTarget& one : targets) {
    table.add({printable(one.words), one.token.issued() ? cat(one.token.number()) : "-",
               one.stands ? when(one.at) : "about to be", when(one.since)});
  }
  return table;
}

std::string with_targets(std::string lease, const std::vector<api::SealedTarget>& targets) {
  lease.pop_back();
  return cat(lease, ",\"targets\":", api::to_json(targets), "}");
}

int show_command(Session& session) {
  auto resource = session.resource();
  if (!resource) return session.fail(resource.error());
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto lease = (*opened)->leases().get(*resource);
  if (!lease) return session.fail(lease.error());
  auto word = (*opened)->fences().word(*resource);
  if (!word) return session.fail(word.error());
  if (session.json()) {
    session.print(with_targets(api::to_json(*lease), word->targets));
    return kDone;
  }
  Table card({session.strong(printable(lease->resource)), std::string(core::word(lease->state))});
  const auto line = [&](const char* name, const std::string& value) {
    if (!value.empty() && value != "-") card.add({name, value});
  };
  line("owner", printable(lease->owner.text()));
  line("token", cat(lease->token.number()));
  line("reason", lease->token.issued() ? std::string(core::word(lease->reason)) : "");
  line("by", printable(lease->by));
  line("why", printable(lease->why));
  line("since", when(lease->acquired_at));
  line("renewed", when(lease->renewed_at));
  line("left", left(lease->remaining));
  line("ttl", lease->ttl.count() > 0 ? format_duration(lease->ttl) : "");
  line("note", printable(lease->note));
  line("progress", printable(lease->progress));
  line("reported", when(lease->progress_at));
  line("generation", lease->generation.hex());
  for (const std::string& text : card.lines()) session.print(text);
  if (!word->targets.empty()) session.print_table(targets_table(word->targets));
  return kDone;
}

Status draw_history(Session& session, app::Opened& opened, const ResourceName& resource,
                    const std::vector<api::PastGrant>& history, const std::string& path) {
  auto events = opened.events().list(
      {.after = "", .prefix = resource.text(), .limit = 100'000, .newest = true});
  if (!events) return events.error();
  return os::write_file(
      path, report::history_svg(resource.text(), history, *events, session.clock().wall()),
      os::Durability::Unsynced);
}

int history_command(Session& session) {
  auto resource = session.resource();
  if (!resource) return session.fail(resource.error());
  std::size_t limit = 100;
  if (const auto text = session.words().value("--limit")) {
    const auto number = parse_digits(*text);
    if (!number || *number == 0 || *number > 10'000) {
      return session.fail(invalid("--limit is a number from 1 to 10000"));
    }
    limit = *number;
  }
  auto opened = session.open();
  if (!opened) return session.fail(opened.error());
  auto history = (*opened)->leases().history(*resource, limit);
  if (!history) return session.fail(history.error());
  if (const auto path = session.words().value("--svg")) {
    auto drawn = draw_history(session, **opened, *resource, *history, *path);
    if (!drawn) return session.fail(drawn.error());
  }
  if (session.json()) {
    session.print(api::to_json(*history));
    return kDone;
  }
  if (history->empty()) {
    session.say(cat(quoted(resource->text()), " was never acquired"));
    return kDone;
  }
  Table table({"TOKEN", "OWNER", "REASON", "ACQUIRED", "ENDED", "HOW", "BY", "WHY"});
  for (const api::PastGrant& past : *history) {
    table.add({cat(past.token.number()), or_dash(past.owner.text()),
               std::string(core::word(past.reason)), when(past.acquired_at), when(past.ended_at),
               past.ended ? std::string(core::word(*past.ended)) : "-", or_dash(past.by),
               or_dash(past.why)});
  }
  session.print_table(table);
  return kDone;
}

constexpr std::array<Option, 1> kLsOptions = {{{"--held", "", "only those that are held"}}};
constexpr std::array<Option, 2> kHistoryOptions = {
    {{"--limit", "N", "at most this many, newest first (default 100)"},
     {"--svg", "FILE", "draw who had it when, and what was refused, into this file"}}};
constexpr std::array<std::string_view, 2> kLsExamples = {"stint ls", "stint ls site/a/ --json"};
constexpr std::array<std::string_view, 1> kShowExamples = {"stint show blog-repo"};
constexpr std::array<std::string_view, 2> kHistoryExamples = {
    "stint history blog-repo --limit 20", "stint history blog-repo --svg blog-repo.svg"};

}  // namespace

const Command kLs = {
    .name = "ls",
    .operands = "[PREFIX]",
    .summary = "list leases: who holds what, for how long",
    .details = "",
    .examples = kLsExamples,
    .options = kLsOptions,
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = ls_command,
};

const Command kShow = {
    .name = "show",
    .operands = "RESOURCE",
    .summary = "show one lease",
    .details =
        "Also the targets that are remembered as sealed for it, with the token and time of their "
        "last seal: what every later run seals first, and transfer and revoke. 'stint seal TARGET "
        "--resource R --forget --why TEXT' takes one off the list.",
    .examples = kShowExamples,
    .options = {},
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = show_command,
};

const Command kHistory = {
    .name = "history",
    .operands = "RESOURCE",
    .summary = "who held it before, how each grant began and ended, by whose order and why",
    .details = "",
    .examples = kHistoryExamples,
    .options = kHistoryOptions,
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = history_command,
};

}  // namespace stint::cli
