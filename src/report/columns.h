// Text in the cells of a terminal: wide characters take two, marks that sit on others none.
#pragma once

#include <string>
#include <string_view>

namespace stint::report {

// REQUIRES: printable(), so without control characters.
std::size_t columns_of(std::string_view utf8);

// Exactly `columns` wide: filled up with spaces, or cut with "~" as its last character.
std::string fitted(std::string_view utf8, std::size_t columns);

}  // namespace stint::report
