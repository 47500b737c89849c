// stint config, version: the program about itself.
#include <array>

#include "api/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"

namespace stint::cli {
namespace {

int config_command(Session& session) {
  const auto& operands = session.words().operands();
  if (operands.front() != "show")
    return session.fail(invalid("what about the configuration? stint config show"));
  auto settings = session.settings();
  if (!settings) return session.fail(settings.error());
  std::vector<std::vector<api::JsonField>> rows;
  rows.push_back({{"name", "store"},
                  {"value", (*settings)->store_url.printable},
                  {"source", (*settings)->store.source}});
  rows.push_back(
      {{"name", "ttl"}, {"value", (*settings)->ttl.value}, {"source", (*settings)->ttl.source}});
  const auto& owner = (*settings)->owner;
  rows.push_back({{"name", "owner"},
                  {"value", owner ? owner->value : std::string("made up for each run")},
                  {"source", owner ? owner->source : std::string("default")}});
  rows.push_back({{"name", "state_directory"},
                  {"value", (*settings)->state_directory},
                  {"source", "XDG_STATE_HOME"}});
  if (session.json()) {
    session.print(api::to_json(rows));
    return kDone;
  }
  for (const auto& row : rows) {
    session.print(cat(std::get<std::string>(row[0].second), " = ",
                      printable(std::get<std::string>(row[1].second)), "   (",
                      std::get<std::string>(row[2].second), ")"));
  }
  return kDone;
}

int version_command(Session& session) {
  if (session.json()) {
    session.print(api::to_json(std::vector<api::JsonField>{
        {"version", STINT_VERSION}, {"stores", "sqlite dir log postgres redis etcd do"}}));
  } else {
    session.print("stint " STINT_VERSION);
  }
  return kDone;
}

constexpr std::array<std::string_view, 1> kConfigExamples = {"stint config show"};
constexpr std::array<std::string_view, 1> kVersionExamples = {"stint version"};

}  // namespace

const Command kConfig = {
    .name = "config",
    .operands = "show",
    .summary = "say each setting and where it came from",
    .details =
        "Precedence: flag, environment, $XDG_CONFIG_HOME/stint/config.toml, default. "
        "The file's keys: store, ttl, owner; its tables: [seal], [serve], [queue.NAME].",
    .examples = kConfigExamples,
    .options = {},
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = config_command,
    .verbs = "show",
};

const Command kVersion = {
    .name = "version",
    .operands = "",
    .summary = "print the version",
    .details = "",
    .examples = kVersionExamples,
    .options = {},
    .least_operands = 0,
    .most_operands = 0,
    .runs_command = false,
    .run = version_command,
};

}  // namespace stint::cli
