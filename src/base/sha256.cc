#include "base/sha256.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace stint {
namespace {

constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

constexpr std::size_t kSha256Block = 64;
using Sha256State = std::array<std::uint32_t, 8>;

void absorb_plainly(Sha256State& state, const char* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 4; ++j) {
      w[i] = w[i] << 8U | static_cast<unsigned char>(block[i * 4 + j]);
    }
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3U);
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10U);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  Sha256State s = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25);
    const std::uint32_t choose = (s[4] & s[5]) ^ (~s[4] & s[6]);
    const std::uint32_t t1 = s[7] + s1 + choose + kRound[i] + w[i];
    const std::uint32_t s0 = std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22);
    const std::uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    s = {t1 + s0 + majority, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += s[i];
}

#if defined(__x86_64__)

// The same by the processor's own instructions, four rounds at a time: a claim is hashed in every
// call of a server, and an API key twice.
__attribute__((target("sha,sse4.1,ssse3"))) void absorb_quickly(Sha256State& state,
                                                                const char* block) {
  const auto* const words = reinterpret_cast<const __m128i*>(block);
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  // The instructions want the halves as (a, b, e, f) and (c, d, g, h), the first one highest.
  const __m128i dcba = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data()));
  const __m128i hgfe = _mm_loadu_si128(reinterpret_cast<const __m128i*>(state.data() + 4));
  const __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1B);
  const __m128i abef_before = _mm_alignr_epi8(cdab, efgh, 8);
  const __m128i cdgh_before = _mm_blend_epi16(efgh, cdab, 0xF0);
  __m128i abef = abef_before;
  __m128i cdgh = cdgh_before;
  __m128i w[4];
  for (std::size_t i = 0; i < 4; ++i) {
    w[i] = _mm_shuffle_epi8(_mm_loadu_si128(words + i), big_endian);
  }
  for (std::size_t four = 0; four < 16; ++four) {
    __m128i& now = w[four % 4];  // until it is made anew: of sixteen rounds ago
    const __m128i& last = w[(four + 3) % 4];
    if (four >= 4) {
      const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, w[(four + 1) % 4]),
                                        _mm_alignr_epi8(last, w[(four + 2) % 4], 4));
      now = _mm_sha256msg2_epu32(sum, last);
    }
    const auto* const rounds = reinterpret_cast<const __m128i*>(kRound.data() + 4 * four);
    const __m128i added = _mm_add_epi32(now, _mm_loadu_si128(rounds));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0E));
  }
  abef = _mm_add_epi32(abef, abef_before);
  cdgh = _mm_add_epi32(cdgh, cdgh_before);
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_sha_instructions() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kFeatures = 7;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

#endif

}  // namespace

void Sha256::absorb(const char* block) {
#if defined(__x86_64__)
  static const bool quick = has_sha_instructions();
  if (quick && !plainly_) return absorb_quickly(state_, block);
#endif
  absorb_plainly(state_, block);
}

void Sha256::add(std::string_view bytes) {
  length_ += bytes.size();
  if (resting_ > 0) {
    const std::size_t more = std::min(kSha256Block - resting_, bytes.size());
    std::copy_n(bytes.data(), more, rest_.data() + resting_);
    resting_ += more;
    bytes.remove_prefix(more);
    if (resting_ < kSha256Block) return;
    absorb(rest_.data());
    resting_ = 0;
  }
  while (bytes.size() >= kSha256Block) {
    absorb(bytes.data());
    bytes.remove_prefix(kSha256Block);
  }
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  resting_ = bytes.size();
}

std::string Sha256::done() {
  const std::uint64_t bits = length_ * 8;
  constexpr std::size_t kLength = 8;
  constexpr std::array<char, kSha256Block> kPadding = {'\x80'};
  const std::size_t room = resting_ < kSha256Block - kLength ? kSha256Block : 2 * kSha256Block;
  add({kPadding.data(), room - kLength - resting_});
  std::array<char, kLength> length{};
  for (std::size_t i = 0; i < kLength; ++i) {
    length[i] = static_cast<char>(bits >> (56 - 8 * i) & 0xFFU);
  }
  add({length.data(), length.size()});
  std::string digest(state_.size() * 4, '\0');
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<char>(state_[i / 4] >> (24 - 8 * (i % 4)) & 0xFFU);
  }
  return digest;
}

std::string sha256(std::string_view bytes) {
  Sha256 whole;
  whole.add(bytes);
  return whole.done();
}

}  // namespace stint
