#include "base/random.h"

#include "base/text.h"

namespace stint {

std::uint64_t Random::below(std::uint64_t bound) {
  // Rejection keeps it uniform: the last, incomplete stretch of the range is thrown away.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t number = next();
  while (number >= limit) number = next();
  return number % bound;
}

std::string Random::id_hex() {
  std::string bytes;
  for (int half = 0; half < 2; ++half) {
    std::uint64_t number = next();
    for (int i = 0; i < 8; ++i) {
      bytes += static_cast<char>(number & 0xFFU);
      number >>= 8U;
    }
  }
  return to_hex(bytes);
}

std::uint64_t SeededRandom::next() {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

}  // namespace stint
