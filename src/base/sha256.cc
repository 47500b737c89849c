#include "base/sha256.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

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

void absorb_sha256(Sha256State& state, const char* block) {
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

}  // namespace

void Sha256::add(std::string_view bytes) {
  length_ += bytes.size();
  if (!rest_.empty()) {
    const std::size_t more = std::min(kSha256Block - rest_.size(), bytes.size());
    rest_ += bytes.substr(0, more);
    bytes.remove_prefix(more);
    if (rest_.size() < kSha256Block) return;
    absorb_sha256(state_, rest_.data());
    rest_.clear();
  }
  while (bytes.size() >= kSha256Block) {
    absorb_sha256(state_, bytes.data());
    bytes.remove_prefix(kSha256Block);
  }
  rest_ = bytes;
}

std::string Sha256::done() {
  const std::uint64_t bits = length_ * 8;
  constexpr std::size_t kLength = 8;
  rest_ += '\x80';
  if (rest_.size() > kSha256Block - kLength) {
    rest_.resize(kSha256Block);
    absorb_sha256(state_, rest_.data());
    rest_.clear();
  }
  rest_.resize(kSha256Block - kLength);
  for (int shift = 56; shift >= 0; shift -= 8) {
    rest_ += static_cast<char>(bits >> static_cast<unsigned>(shift) & 0xFFU);
  }
  absorb_sha256(state_, rest_.data());
  std::string digest;
  digest.reserve(4 * state_.size());
  for (const std::uint32_t word : state_) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      digest += static_cast<char>(word >> static_cast<unsigned>(shift) & 0xFFU);
    }
  }
  return digest;
}

std::string sha256(std::string_view bytes) {
  Sha256 whole;
  whole.add(bytes);
  return whole.done();
}

}  // namespace stint
