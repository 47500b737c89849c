// Secrets in the text of a URL.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace stint {

// "postgres://user:pa/ss@host": a '/', '?' or '#' in the password ends the authority too early, and
// what stands behind the colon is no port.
struct RawPassword {
  std::size_t from = 0;  // its colon
  std::size_t to = 0;    // the '@' behind it
};
// Nothing if there is no such thing; works on any text.
std::optional<RawPassword> raw_password(std::string_view text);

}  // namespace stint
