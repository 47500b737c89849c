// Base64 (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stint {

std::string base64(std::string_view bytes);
// Empty: it is none. Padding is required.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace stint
