#include "tests/support/slice.h"

#include <cstdlib>

#include "base/text.h"

namespace stint::test {

int asked(const char* variable, int slice) {
  const char* text = std::getenv(variable);
  const auto number = text == nullptr ? std::nullopt : parse_digits(text);
  return number && *number <= 1'000'000'000 ? static_cast<int>(*number) : slice;
}

}  // namespace stint::test
