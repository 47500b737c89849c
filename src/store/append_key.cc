#include "store/append_key.h"

#include "base/text.h"

namespace stint::store {

std::string append_key(std::string_view prefix, std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return cat(prefix, std::string(kAppendDigits - digits.size(), '0'), digits);
}

std::uint64_t append_number(std::string_view prefix, std::string_view key) {
  if (!key.starts_with(prefix) || key.size() != prefix.size() + kAppendDigits) return 0;
  return parse_digits(key.substr(prefix.size())).value_or(0);
}

}  // namespace stint::store
