#include "base/url_secret.h"

#include "base/text.h"

namespace stint {

std::optional<RawPassword> raw_password(std::string_view text) {
  const std::size_t start = text.find("://");
  if (start == text.npos) return std::nullopt;
  const std::size_t end = text.find_first_of("/?#", start + 3);
  const std::size_t last = text.rfind('@');
  if (end == text.npos || last == text.npos || last < end) return std::nullopt;
  const std::string_view authority = text.substr(start + 3, end - start - 3);
  const std::size_t port = authority.rfind(':');
  if (authority.find('@') != authority.npos || port == authority.npos) return std::nullopt;
  if (authority.ends_with(']') || parse_digits(authority.substr(port + 1))) return std::nullopt;
  return RawPassword{start + 3 + authority.find(':'), last};
}

}  // namespace stint
