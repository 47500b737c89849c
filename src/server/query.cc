#include "server/query.h"

#include "base/text.h"

namespace stint::server {
namespace {

Result<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      std::string digits(text.substr(i + 1, 2));
      for (char& c : digits) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
      const auto byte = digits.size() == 2 ? from_hex(digits) : std::nullopt;
      if (!byte) return invalid("a % in the query that no two hexadecimal digits follow");
      out += *byte;
      i += 2;
    }
  }
  if (!is_utf8(out)) return invalid("a query that is not UTF-8");
  return out;
}

}  // namespace

Result<Target> parse_target(std::string_view target) {
  Target out;
  const std::size_t question = target.find('?');
  out.path = target.substr(0, question);
  if (question == target.npos || question + 1 == target.size()) return out;
  for (const std::string_view pair : split(target.substr(question + 1), '&')) {
    const std::size_t equals = pair.find('=');
    auto name = decoded(pair.substr(0, equals));
    if (!name) return name.error();
    auto value = decoded(equals == pair.npos ? std::string_view() : pair.substr(equals + 1));
    if (!value) return value.error();
    if (!out.query.emplace(*name, *value).second) {
      return invalid(cat(quoted(*name), " stands twice in the query"));
    }
  }
  return out;
}

}  // namespace stint::server
