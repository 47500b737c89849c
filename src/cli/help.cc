#include "cli/help.h"

#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"
#include "cli/table.h"

namespace stint::cli {
namespace {

constexpr std::array<const Command*, 38> kAll = {
    &kRun,    &kAcquire, &kRenew,   &kRelease, &kCheck,      &kProgress, &kTransfer, &kRevoke,
    &kWrite,  &kPublish, &kPush,    &kSeal,    &kProxy,      &kServe,    &kKey,      &kAdmit,
    &kQueue,  &kWork,    &kGuard,   &kSlots,   &kExplain,    &kOnce,     &kTune,     &kCron,
    &kLs,     &kShow,    &kHistory, &kEvents,  &kWatch,      &kTop,      &kForget,   &kConfig,
    &kDoctor, &kTorture, &kStore,   &kVersion, &kCompletion, &kHelp};

struct Variable {
  std::string_view name;
  std::string_view meaning;
};
constexpr std::array<Variable, 29> kVariables = {{
    {"STINT_STORE", "the store's URL; a child of run gets it without a password"},
    {"STINT_STORE_FILE",
     "a file (0600) with the whole URL; counts before STINT_STORE if it is the same store"},
    {"STINT_KEY", "the key for a server (--store http://, https://), or the secret of do://"},
    {"STINT_KEY_FILE", "a file with it"},
    {"STINT_OWNER", "the owner's label; RUN_ID if it is not set"},
    {"STINT_RESOURCE", "set for a child of run: the resource (the first one named)"},
    {"STINT_TOKEN", "its fencing token"},
    {"STINT_CLAIM", "what proves that this is the run that acquired it; do not print it"},
    {"STINT_GENERATION", "the store's life that the token belongs to"},
    {"STINT_DEADLINE_MS",
     "when the work will be stopped unless the lease is renewed: Unix time, a hint"},
    {"STINT_DEADLINE_FILE", "a file with the present deadline"},
    {"STINT_PREVIOUS_PROGRESS", "the last progress marker of the holder before"},
    {"STINT_HELD",
     "all that this process and its ancestors hold: 'resource generation token' a line"},
    {"STINT_HELD_CLAIMS", "their claims, in the same order"},
    {"STINT_SLOT", "set for a job of stint cron: the slot's nominal time, on the job's own clock"},
    {"STINT_SLOT_KEY",
     "job@2026-11-15T06:45:00Z: the instant at which it was due; the same over retries, machines "
     "and catch-up"},
    {"STINT_ATTEMPT",
     "1, 2 ...: of the slot (more than 1 only if the job allows retries), or of work's item"},
    {"STINT_BACKFILL", "1 if the slot was missed and is caught up with; else not set"},
    {"STINT_ONCE_KEY", "set for the command of stint once"},
    {"STINT_GUARD",
     "warn: writes that a guard would refuse are made all the same, and recorded. NOT safe: only "
     "for finding out what a guard would refuse. Seals take no notice of it"},
    {"STINT_ITEM", "set for a child of work: the item's id"},
    {"STINT_QUEUE", "the queue that it is in"},
    {"STINT_EPOCH", "the epoch of its claim"},
    {"STINT_PAYLOAD_FILE", "a file with its payload, which is also on standard input"},
    {"STINT_CHECKPOINT_FILE", "a file with what the worker before had saved; empty: nothing"},
    {"STINT_LOST_CAUSE", "set for the --on-lost command"},
    {"XDG_STATE_HOME",
     "where the default store, claims and anchors are kept (default ~/.local/state)"},
    {"XDG_CONFIG_HOME",
     "where stint/config.toml and stint/stint.toml are looked for (default ~/.config)"},
    {"NO_COLOR", "no colours"},
}};

std::string wrapped(std::string_view text, std::size_t columns, std::string_view indent) {
  std::string out;
  for (const std::string_view paragraph : split(text, '\n')) {
    std::string line(indent);
    for (const std::string_view word : split(paragraph, ' ')) {
      if (line.size() > indent.size() && line.size() + 1 + word.size() > columns) {
        out += line + "\n";
        line = indent;
      }
      if (line.size() > indent.size()) line += ' ';
      line += word;
    }
    out += (line == indent ? std::string() : line) + "\n";
  }
  return out;
}

std::string option_lines(std::span<const Option> options) {
  std::string out;
  for (const Option& option : options) {
    const std::string left = cat("  ", option.name, option.value.empty() ? "" : " ", option.value);
    constexpr std::size_t kColumn = 26;
    const std::string help = wrapped(option.help, 96, std::string(kColumn, ' '));
    out += left.size() + 2 > kColumn
               ? cat(left, "\n", help)
               : cat(left, std::string(kColumn - left.size(), ' '), help.substr(kColumn));
  }
  return out;
}

std::string usage_of(const Command& command) {
  return cat("stint ", command.name, command.operands.empty() ? "" : " ", command.operands,
             command.runs_command || command.may_run_command ? " -- CMD..." : "");
}

template <class Rows>
std::string listed(const Rows& rows) {
  Table table({"", ""});
  for (const auto& [name, meaning] : rows) table.add({cat("  ", name), std::string(meaning)});
  std::string out;
  bool header = true;
  for (const std::string& line : table.lines()) {
    if (!header) out += line + "\n";
    header = false;
  }
  return out;
}

// ---- manual pages

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string roff_options(std::span<const Option> options) {
  std::string out;
  for (const Option& option : options) {
    out += cat(".TP\n\\fB", roff(option.name), "\\fR", option.value.empty() ? "" : " \\fI",
               option.value, option.value.empty() ? "" : "\\fR", "\n", roff(option.help), "\n");
  }
  return out;
}

template <class Rows>
std::string roff_rows(const Rows& rows) {
  std::string out;
  for (const auto& [name, meaning] : rows)
    out += cat(".TP\n\\fB", roff(name), "\\fR\n", roff(meaning), "\n");
  return out;
}

}  // namespace

std::span<const Command* const> all_commands() { return kAll; }

const Command* find_command(std::string_view name) {
  for (const Command* command : kAll) {
    if (command->name == name) return command;
  }
  return nullptr;
}

std::string help_all() {
  std::string out =
      "Agents take turns. Late writes bounce.\n\n"
      "  stint run RESOURCE -- CMD...     run CMD while holding the lease on RESOURCE\n\n"
      "Examples:\n"
      "  stint run blog-repo -- ./publish.sh\n"
      "  stint run blog-repo --on-held wait=10m -- ./publish.sh\n"
      "  stint ls\n\nCommands:\n";
  std::vector<std::pair<std::string_view, std::string_view>> rows;
  for (const Command* command : kAll) rows.emplace_back(command->name, command->summary);
  out += listed(rows);
  out +=
      cat("\nFor every command, before or after its name:\n", option_lines(global_options()),
          "\nstint help COMMAND says more; also: stint help exit-codes, stint help environment\n");
  return out;
}

std::string help_of(const Command& command) {
  std::string out;
  if (!command.examples.empty()) {
    out += "Examples:\n";
    for (const std::string_view example : command.examples) out += cat("  ", example, "\n");
    out += "\n";
  }
  out += cat("Usage: ", usage_of(command), "\n\n", command.summary, ".\n");
  if (!command.details.empty()) out += cat("\n", wrapped(command.details, 96, ""));
  if (!command.options.empty()) out += cat("\nOptions:\n", option_lines(command.options));
  out += cat("\nFor every command:\n", option_lines(global_options()));
  return out;
}

std::string help_topic(std::string_view topic) {
  if (topic == "exit-codes") {
    std::vector<std::pair<std::string_view, std::string_view>> rows;
    for (const ExitMeaning& exit : kExitMeanings) rows.emplace_back(exit.code, exit.meaning);
    return cat("Exit codes:\n", listed(rows));
  }
  if (topic == "environment") {
    std::vector<std::pair<std::string_view, std::string_view>> rows;
    for (const Variable& variable : kVariables) rows.emplace_back(variable.name, variable.meaning);
    return cat("Environment variables, read and set for the command of a run:\n", listed(rows));
  }
  return {};
}

std::string manual_of(const Command& command) {
  std::string out =
      cat(".TH STINT-", roff(command.name), " 1 \"\" \"stint " STINT_VERSION "\" \"Stint\"\n",
          ".SH NAME\nstint\\-", command.name, " \\- ", roff(command.summary),
          "\n.SH SYNOPSIS\n\\fB", roff(usage_of(command)), "\\fR\n");
  if (!command.details.empty()) out += ".SH DESCRIPTION\n";
  for (const std::string_view paragraph : split(command.details, '\n')) {
    if (!paragraph.empty()) out += cat(".PP\n", roff(paragraph), "\n");
  }
  out += cat(".SH OPTIONS\n", roff_options(command.options), roff_options(global_options()),
             ".SH EXAMPLES\n.nf\n");
  for (const std::string_view example : command.examples) out += cat(roff(example), "\n");
  return out + ".fi\n.SH SEE ALSO\n.BR stint (1)\n";
}

std::string manual_all() {
  std::string out =
      cat(".TH STINT 1 \"\" \"stint " STINT_VERSION
          "\" \"Stint\"\n.SH NAME\nstint \\- leases and fencing for scheduled and background "
          "agents\n.SH SYNOPSIS\n\\fBstint\\fR \\fICOMMAND\\fR [options]\n.SH COMMANDS\n");
  for (const Command* command : kAll) {
    out += cat(".TP\n\\fB", command->name, "\\fR\n", roff(command->summary), "\n");
  }
  std::vector<std::pair<std::string_view, std::string_view>> exits;
  for (const ExitMeaning& exit : kExitMeanings) exits.emplace_back(exit.code, exit.meaning);
  std::vector<std::pair<std::string_view, std::string_view>> variables;
  for (const Variable& variable : kVariables)
    variables.emplace_back(variable.name, variable.meaning);
  return out + cat(".SH OPTIONS\n", roff_options(global_options()), ".SH EXIT STATUS\n",
                   roff_rows(exits), ".SH ENVIRONMENT\n", roff_rows(variables));
}

namespace {

int help_command(Session& session) {
  const auto& operands = session.words().operands();
  const bool manual = session.words().has("--man");
  std::string text;
  if (operands.empty()) {
    text = manual ? manual_all() : help_all();
  } else if (const Command* command = find_command(operands.front())) {
    text = manual ? manual_of(*command) : help_of(*command);
  } else {
    text = help_topic(operands.front());
  }
  if (text.empty()) {
    return session.fail(invalid(cat("there is no help on ", quoted(operands.front()),
                                    " (topics: the commands, exit-codes, environment)")));
  }
  text.pop_back();
  session.print(text);
  return kDone;
}

constexpr std::array<Option, 1> kHelpOptions = {{{"--man", "", "as a manual page"}}};
constexpr std::array<std::string_view, 3> kHelpExamples = {
    "stint help run", "stint help exit-codes", "stint help environment"};

}  // namespace

const Command kHelp = {
    .name = "help",
    .operands = "[COMMAND|TOPIC]",
    .summary = "help on a command, on exit-codes or on environment",
    .details = "",
    .examples = kHelpExamples,
    .options = kHelpOptions,
    .least_operands = 0,
    .most_operands = 1,
    .runs_command = false,
    .run = help_command,
};

}  // namespace stint::cli
