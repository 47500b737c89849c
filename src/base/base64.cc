#include "base/base64.h"

#include <array>

namespace stint {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::array<signed char, 256> make_values() {
  std::array<signed char, 256> out{};
  out.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    out[static_cast<unsigned char>(kAlphabet[i])] = static_cast<signed char>(i);
  }
  return out;
}

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) -> unsigned {
      return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0U;
    };
    const unsigned three = (byte(i) << 16U) | (byte(i + 1) << 8U) | byte(i + 2);
    out += kAlphabet[three >> 18U];
    out += kAlphabet[(three >> 12U) & 63U];
    out += i + 1 < bytes.size() ? kAlphabet[(three >> 6U) & 63U] : '=';
    out += i + 2 < bytes.size() ? kAlphabet[three & 63U] : '=';
  }
  return out;
}

std::optional<std::string> decode_base64(std::string_view text) {
  static const std::array<signed char, 256> values = make_values();
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  unsigned bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool pad = i >= text.size() - padding;
    const int value = pad ? 0 : values[static_cast<unsigned char>(text[i])];
    if (value < 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<unsigned>(value);
    if (i % 4 != 3) continue;
    for (const unsigned shift : {16U, 8U, 0U}) out += static_cast<char>((bits >> shift) & 0xFFU);
    bits = 0;
  }
  out.resize(out.size() - padding);
  return out;
}

}  // namespace stint
