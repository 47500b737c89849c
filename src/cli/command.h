// A command as data: help, manual, completion and the parser are made from the same table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stint::cli {

class Session;

struct Option {
  std::string_view name;   // "--ttl"
  std::string_view value;  // "D"; empty: a flag
  std::string_view help;
  bool repeated = false;
};

// The words of one command line, checked against the command's table.
class Words {
 public:
  bool has(std::string_view option) const;
  std::optional<std::string> value(std::string_view option) const;
  std::vector<std::string> values(std::string_view option) const;
  const std::vector<std::string>& operands() const { return operands_; }
  const std::vector<std::string>& command() const { return command_; }  // after "--"

 private:
  friend class Parser;
  std::vector<std::pair<std::string, std::string>> options_;
  std::vector<std::string> operands_;
  std::vector<std::string> command_;
};

struct Command {
  std::string_view name;
  std::string_view operands;  // "RESOURCE..." for the usage line
  std::string_view summary;   // one line
  std::string_view details;   // paragraphs
  std::span<const std::string_view> examples;
  std::span<const Option> options;
  std::size_t least_operands = 0;
  std::size_t most_operands = 0;
  bool runs_command = false;  // needs "-- CMD"
  int (*run)(Session& session) = nullptr;
  bool may_run_command = false;  // "-- CMD" may follow
  std::string_view verbs = {};   // its first operand, for completion: "create ls revoke"
};

// Every command, in the order in which help lists them.
std::span<const Command* const> all_commands();
const Command* find_command(std::string_view name);

// Stand before or after the command's name.
std::span<const Option> global_options();

struct Parsed {
  const Command* command = nullptr;  // null: none was named
  Words words;
  bool help = false;
};
Result<Parsed> parse(const std::vector<std::string>& arguments);

}  // namespace stint::cli
