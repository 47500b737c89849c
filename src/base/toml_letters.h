// TOML lets letters other than ASCII stand in quotes and comments only. toml++ 3.3 of Debian 12 has
// undefined behaviour where one stands elsewhere; so that is looked for before it sees the text.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stint {

// Code::Invalid, with path, line and column. What is wrong with the quotes is not said here.
Status check_toml_letters(std::string_view text, const std::string& path);

}  // namespace stint
