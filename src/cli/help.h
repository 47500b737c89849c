// Help, manual pages and shell completion, all made from the commands' tables.
#pragma once

#include <string>

#include "cli/command.h"

namespace stint::cli {

std::string help_all();
std::string help_of(const Command& command);
// "exit-codes", "environment"; empty: no such topic.
std::string help_topic(std::string_view topic);
std::string manual_of(const Command& command);
std::string manual_all();

}  // namespace stint::cli
