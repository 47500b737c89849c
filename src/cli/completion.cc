// stint completion: made from the commands' tables.
#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/session.h"

namespace stint::cli {
namespace {

std::string option_names(const Command& command) {
  std::string out;
  for (const Option& option : command.options) out += cat(option.name, " ");
  for (const Option& option : global_options()) out += cat(option.name, " ");
  return out;
}

std::string command_names() {
  std::string out;
  for (const Command* command : all_commands()) out += cat(command->name, " ");
  return out;
}

// What may follow its name.
std::string words_after(const Command& command) {
  return cat(command.verbs, command.verbs.empty() ? "" : " ", option_names(command));
}

std::string bash() {
  std::string out =
      cat("_stint() {\n  local cur=${COMP_WORDS[COMP_CWORD]} cmd=${COMP_WORDS[1]}\n"
          "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W '",
          command_names(), "' -- \"$cur\")); return; fi\n  case $cmd in\n");
  for (const Command* command : all_commands()) {
    out += cat("    ", command->name, ") COMPREPLY=($(compgen -W '", words_after(*command),
               "' -- \"$cur\"));;\n");
  }
  return out + "  esac\n}\ncomplete -o default -F _stint stint";
}

std::string zsh() {
  std::string out = "#compdef stint\n_stint() {\n  local -a commands=(\n";
  for (const Command* command : all_commands()) out += cat("    '", command->name, "'\n");
  out +=
      "  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  case $words[2] "
      "in\n";
  for (const Command* command : all_commands()) {
    out += cat("    ", command->name, ") compadd -- ", words_after(*command), ";;\n");
  }
  return out +
         "  esac\n}\nif [ \"$funcstack[1]\" = _stint ]; then _stint \"$@\"; else compdef _stint "
         "stint; fi";
}

std::string fish() {
  std::string out = "complete -c stint -f\n";
  for (const Command* command : all_commands()) {
    out += cat("complete -c stint -n __fish_use_subcommand -a ", command->name, "\n");
    if (!command->verbs.empty()) {
      out += cat("complete -c stint -n '__fish_seen_subcommand_from ", command->name, "' -a '",
                 command->verbs, "'\n");
    }
    for (const Option& option : command->options) {
      const bool is_long = option.name.starts_with("--");
      out += cat("complete -c stint -n '__fish_seen_subcommand_from ", command->name, "' ",
                 is_long ? "-l " : "-s ", option.name.substr(is_long ? 2 : 1), "\n");
    }
  }
  out.pop_back();
  return out;
}

int completion_command(Session& session) {
  const std::string& shell = session.words().operands().front();
  if (shell == "bash") {
    session.print(bash());
  } else if (shell == "zsh") {
    session.print(zsh());
  } else if (shell == "fish") {
    session.print(fish());
  } else {
    return session.fail(
        invalid(cat("no completion for ", quoted(shell), "; bash, zsh and fish are known")));
  }
  return kDone;
}

constexpr std::array<std::string_view, 1> kCompletionExamples = {
    "stint completion bash > ~/.local/share/bash-completion/completions/stint"};

}  // namespace

const Command kCompletion = {
    .name = "completion",
    .operands = "SHELL",
    .summary = "print completion for bash, zsh or fish",
    .details = "",
    .examples = kCompletionExamples,
    .options = {},
    .least_operands = 1,
    .most_operands = 1,
    .runs_command = false,
    .run = completion_command,
    .verbs = "bash zsh fish",
};

}  // namespace stint::cli
