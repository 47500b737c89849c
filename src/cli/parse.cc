#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/command.h"

namespace stint::cli {
namespace {

constexpr std::array<Option, 7> kGlobals = {{
    {"--store", "URL",
     "where the leases live (STINT_STORE, STINT_STORE_FILE; default: "
     "sqlite:$XDG_STATE_HOME/stint/stint.db)"},
    {"--owner", "ID", "the label of this run, for people (STINT_OWNER, else RUN_ID, else made up)"},
    {"--json", "", "print JSON; errors too"},
    {"-q", "", "say nothing but results and errors"},
    {"-v", "", "say more"},
    {"--no-color", "", "no colours (also: NO_COLOR)"},
    {"--help", "", "help on this command"},
}};

// How many single-letter edits lead from one to the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

std::string suggestion(std::string_view wrong, const std::vector<std::string_view>& known) {
  constexpr std::size_t kFar = 3;
  std::string_view best;
  std::size_t least = kFar;
  for (const std::string_view candidate : known) {
    const std::size_t d = distance(wrong, candidate);
    if (d < least) {
      least = d;
      best = candidate;
    }
  }
  return best.empty() ? std::string() : cat("; did you mean ", best, "?");
}

// No option's name has a blank in it: "-5 * * * *" is a bad cron expression, to be told as such.
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-' &&
         word.substr(0, word.find('=')).find(' ') == std::string::npos;
}

// The verbs that an option is for, as its help begins: "claim, renew: how long ...". Empty: any, or
// not only verbs stand there.
std::vector<std::string_view> verbs_of(const Option& option, const std::string& verbs) {
  std::vector<std::string_view> out;
  const std::size_t colon = option.help.find(": ");
  if (colon == std::string_view::npos) return {};
  for (std::string_view rest = option.help.substr(0, colon); !rest.empty();) {
    const std::size_t comma = rest.find(", ");
    const std::string_view one = rest.substr(0, comma);
    if (one.find(' ') != one.npos || cat(" ", verbs, " ").find(cat(" ", one, " ")) == verbs.npos) {
      return {};
    }
    out.push_back(one);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 2);
  }
  return out;
}

}  // namespace

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& arguments) : arguments_(arguments) {}

  Result<Parsed> go() {
    for (; at_ < arguments_.size(); ++at_) {
      const std::string& word = arguments_[at_];
      if (word == "--") {
        parsed_.words.command_.assign(arguments_.begin() + static_cast<std::ptrdiff_t>(at_) + 1,
                                      arguments_.end());
        separator_ = true;
        break;
      }
      auto taken = looks_like_option(word) ? option(word) : operand(word);
      if (!taken) return taken.error();
    }
    if (parsed_.help || parsed_.command == nullptr) return parsed_;
    if (auto ok = check_counts(); !ok) return ok.error();
    if (auto ok = check_verb(); !ok) return ok.error();
    return parsed_;
  }

 private:
  Status operand(const std::string& word) {
    if (parsed_.command != nullptr) {
      parsed_.words.operands_.push_back(word);
      return {};
    }
    parsed_.command = find_command(word);
    if (parsed_.command != nullptr) return {};
    std::vector<std::string_view> names;
    for (const Command* command : all_commands()) names.push_back(command->name);
    return invalid(cat("there is no command ", quoted(word), suggestion(word, names),
                       " (stint help lists them)"));
  }

  const Option* find(std::string_view name) const {
    for (const Option& option : kGlobals) {
      if (option.name == name) return &option;
    }
    if (parsed_.command == nullptr) return nullptr;
    for (const Option& option : parsed_.command->options) {
      if (option.name == name) return &option;
    }
    return nullptr;
  }

  Error unknown(const std::string& word) const {
    std::vector<std::string_view> names;
    for (const Option& option : kGlobals) names.push_back(option.name);
    if (parsed_.command != nullptr) {
      for (const Option& option : parsed_.command->options) names.push_back(option.name);
    }
    return invalid(cat("unknown option ", quoted(word), suggestion(word, names)));
  }

  Status option(const std::string& word) {
    if (word == "-h" || word == "--help") {
      parsed_.help = true;
      return {};
    }
    // As everywhere; only in front, where no command has a say.
    if ((word == "-V" || word == "--version") && parsed_.command == nullptr) {
      parsed_.command = find_command("version");
      return {};
    }
    const std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    const Option* known = find(name);
    if (known == nullptr) return unknown(name);
    if (!known->repeated && parsed_.words.has(name)) return invalid(cat(name, " is given twice"));
    std::string value;
    if (known->value.empty()) {
      if (equals != std::string::npos) return invalid(cat(name, " takes no value"));
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else {
      if (at_ + 1 >= arguments_.size() || arguments_[at_ + 1] == "--") {
        return invalid(cat(name, " needs a value: ", name, " ", known->value));
      }
      value = arguments_[++at_];
    }
    parsed_.words.options_.emplace_back(name, value);
    return {};
  }

  Status check_counts() const {
    const Command& command = *parsed_.command;
    const std::size_t count = parsed_.words.operands_.size();
    if (command.runs_command && (!separator_ || parsed_.words.command_.empty())) {
      return invalid(cat("the command to run is missing: stint ", command.name, " ",
                         command.operands, " -- CMD..."));
    }
    if (!command.runs_command && !command.may_run_command && separator_)
      return invalid(cat("stint ", command.name, " runs no command after --"));
    if (count < command.least_operands) {
      return invalid(cat("something is missing: stint ", command.name, " ", command.operands));
    }
    if (count > command.most_operands) {
      return invalid(cat("too many words: ", quoted(parsed_.words.operands_[command.most_operands]),
                         " (usage: stint ", command.name, " ", command.operands, ")"));
    }
    return {};
  }

  // An option of another verb would be taken no notice of.
  Status check_verb() const {
    const Command& command = *parsed_.command;
    if (command.verbs.empty()) return {};
    const auto& operands = parsed_.words.operands_;
    const std::string verb = operands.empty() ? std::string() : operands.front();
    for (const Option& option : command.options) {
      if (!parsed_.words.has(option.name)) continue;
      const auto meant = verbs_of(option, std::string(command.verbs));
      if (meant.empty() || std::ranges::find(meant, verb) != meant.end()) continue;
      return invalid(cat(option.name, " is for 'stint ", command.name, " ", meant.front(), "'"));
    }
    return {};
  }

  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  bool separator_ = false;
  Parsed parsed_;
};

bool Words::has(std::string_view option) const {
  return std::ranges::any_of(options_, [&](const auto& given) { return given.first == option; });
}

std::optional<std::string> Words::value(std::string_view option) const {
  for (const auto& [name, value] : options_) {
    if (name == option) return value;
  }
  return std::nullopt;
}

std::vector<std::string> Words::values(std::string_view option) const {
  std::vector<std::string> out;
  for (const auto& [name, value] : options_) {
    if (name == option) out.push_back(value);
  }
  return out;
}

std::span<const Option> global_options() { return kGlobals; }

Result<Parsed> parse(const std::vector<std::string>& arguments) { return Parser(arguments).go(); }

}  // namespace stint::cli
