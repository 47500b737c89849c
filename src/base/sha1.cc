#include "base/sha1.h"

#include <array>
#include <bit>
#include <cstdint>

namespace stint {
namespace {

constexpr std::size_t kSha1Block = 64;
using Sha1State = std::array<std::uint32_t, 5>;

void absorb_sha1(Sha1State& state, std::string_view block) {
  std::array<std::uint32_t, 80> w{};
  for (std::size_t i = 0; i < kSha1Block; ++i)
    w[i / 4] = w[i / 4] << 8U | static_cast<unsigned char>(block[i]);
  for (std::size_t i = 16; i < w.size(); ++i)
    w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < w.size(); ++i) {
    std::uint32_t mixed = b ^ c ^ d;
    std::uint32_t constant = i < 40 ? 0x6ed9eba1 : 0xca62c1d6;
    if (i < 20) {
      mixed = (b & c) | (~b & d);
      constant = 0x5a827999;
    } else if (i >= 40 && i < 60) {
      mixed = (b & c) | (b & d) | (c & d);
      constant = 0x8f1bbcdc;
    }
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + constant + w[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const Sha1State add = {a, b, c, d, e};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += add[i];
}

}  // namespace

std::string sha1(std::string_view bytes) {
  Sha1State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= kSha1Block; bytes.remove_prefix(kSha1Block))
    absorb_sha1(state, bytes.substr(0, kSha1Block));
  std::string last(bytes);
  last += '\x80';
  while (last.size() % kSha1Block != kSha1Block - 8) last += '\0';
  for (unsigned shift = 64; shift > 0; shift -= 8) last += static_cast<char>(bits >> (shift - 8));
  for (std::string_view rest = last; !rest.empty(); rest.remove_prefix(kSha1Block))
    absorb_sha1(state, rest.substr(0, kSha1Block));
  std::string out;
  for (const std::uint32_t word : state) {
    for (unsigned shift = 32; shift > 0; shift -= 8) out += static_cast<char>(word >> (shift - 8));
  }
  return out;
}

}  // namespace stint
