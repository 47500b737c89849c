// stint config, doctor, version: the program about itself and its store.
#include <array>

#include "api/json.h"
#include "app/opened.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "os/host.h"

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

int doctor_command(Session& session) {
  if (!session.words().has("--accept-restored")) {
    return session.fail(invalid(
        "doctor needs --accept-restored --why TEXT; it examines stores in a later version"));
  }
  const auto why = session.words().value("--why");
  if (!why || why->empty())
    return session.fail(invalid("--why TEXT is missing: the reason is kept on record"));
  Token past;
  if (const auto text = session.words().value("--past")) {
    auto token = Token::parse(*text);
    if (!token) return session.fail(invalid(cat("--past: ", token.error().message)));
    past = *token;
  }
  auto settings = session.settings();
  if (!settings) return session.fail(settings.error());
  auto accepted =
      app::accept_restored({.url = (*settings)->store_url,
                            .state_directory = (*settings)->state_directory,
                            .may_create = true},
                           session.clock(), session.random(),
                           {*why, session.words().value("--by").value_or(os::user_name()), past});
  if (!accepted) return session.fail(accepted.error());
  if (session.json()) {
    session.print(api::to_json(std::vector<api::JsonField>{
        {"generation", accepted->generation.hex()},
        {"floor", static_cast<std::int64_t>(accepted->floor.number())}}));
  } else {
    session.say(cat("accepted as generation ", accepted->generation.hex(),
                    "; every new token is above ", accepted->floor.number()));
  }
  return kDone;
}

int version_command(Session& session) {
  if (session.json()) {
    session.print(api::to_json(
        std::vector<api::JsonField>{{"version", STINT_VERSION}, {"stores", "sqlite"}}));
  } else {
    session.print("stint " STINT_VERSION);
  }
  return kDone;
}

constexpr std::array<Option, 4> kDoctorOptions = {{
    {"--accept-restored", "", "an operator's word: use this restored or copied store"},
    {"--why", "TEXT", "the reason, for the record"},
    {"--by", "WHO", "who says so (default: the user's name)"},
    {"--past", "N", "raise the floor at least to this token"},
}};
constexpr std::array<std::string_view, 1> kConfigExamples = {"stint config show"};
constexpr std::array<std::string_view, 1> kDoctorExamples = {
    "stint doctor --accept-restored --why 'restored the backup of Monday'"};
constexpr std::array<std::string_view, 1> kVersionExamples = {"stint version"};

}  // namespace

const Command kConfig = {
    .name = "config",
    .operands = "show",
    .summary = "say each setting and where it came from",
    .details =
        "Precedence: flag, environment, $XDG_CONFIG_HOME/stint/config.toml, default. "
        "The file's keys: store, ttl, owner.",
    .examples = kConfigExamples,
    .options = {},
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = config_command,
};

const Command kDoctor = {
    .name = "doctor",
    .operands = "--accept-restored --why TEXT",
    .summary = "accept a store that was restored from a backup or copied",
    .details =
        "A store that went back in time is refused wherever anybody remembers it. When a person "
        "has "
        "looked at it and wants it used, this gives it a new generation that descends from the old "
        "one, and raises the floor above every token that can have been issued before.",
    .examples = kDoctorExamples,
    .options = kDoctorOptions,
    .least_operands = 0,
    .most_operands = 0,
    .runs_command = false,
    .run = doctor_command,
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
