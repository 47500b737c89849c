// SHA-256 (FIPS 180-4). Own code because OpenSSL in the start-up path makes `run` several times
// slower.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace stint {

// Piece by piece, for what is too large to be held.
class Sha256 {
 public:
  Sha256() = default;
  // `plainly`: without the processor's own instructions, also where it has them.
  explicit Sha256(bool plainly) : plainly_(plainly) {}
  void add(std::string_view bytes);
  // The 32 bytes of the digest; call it once, at the end.
  std::string done();

 private:
  void absorb(const char* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<char, 64> rest_{};  // less than a block of it is in use
  std::size_t resting_ = 0;
  std::uint64_t length_ = 0;
  bool plainly_ = false;
};

// The 32 bytes of the digest.
std::string sha256(std::string_view bytes);

}  // namespace stint
