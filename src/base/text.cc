#include "base/text.h"

#include <algorithm>
#include <cstring>

namespace stint {
namespace {

// The length of the UTF-8 sequence at `at`, or 0 if it is not well formed (overlong, surrogate,
// cut).
std::size_t sequence_length(std::string_view s, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const auto tail = [&](std::size_t i) { return i < s.size() && (byte(i) & 0xC0U) == 0x80U; };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(at + 1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!tail(at + 1) || !tail(at + 2)) return 0;
    if (first == 0xE0 && byte(at + 1) < 0xA0) return 0;
    if (first == 0xED && byte(at + 1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!tail(at + 1) || !tail(at + 2) || !tail(at + 3)) return 0;
    if (first == 0xF0 && byte(at + 1) < 0x90) return 0;
    if (first == 0xF4 && byte(at + 1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

// Whether the next eight bytes are all below 0x80, as nearly always.
bool eight_plain(std::string_view s, std::size_t at) {
  if (s.size() - at < 8) return false;
  std::uint64_t word = 0;
  std::memcpy(&word, s.data() + at, sizeof word);
  return (word & 0x8080808080808080U) == 0;
}

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::optional<unsigned> hex_value(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  return std::nullopt;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    if (eight_plain(bytes, at)) {
      at += 8;
      continue;
    }
    const std::size_t length = sequence_length(bytes, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

bool has_control(std::string_view utf8) {
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto c = static_cast<unsigned char>(utf8[i]);
    if (c < 0x20 || c == 0x7F) return true;
    if (c == 0xC2 && i + 1 < utf8.size() && static_cast<unsigned char>(utf8[i + 1]) < 0xA0) {
      return true;
    }
    if (c != 0xE2) continue;
    const std::string_view rest = utf8.substr(i, 3);
    if (rest == "\xE2\x80\xA8" || rest == "\xE2\x80\xA9") return true;
  }
  return false;
}

namespace {

// Marks that turn the text after them around: what is seen would not be what is there.
bool turns_around(std::string_view piece) {
  const bool embedding = piece >= "\xE2\x80\xAA" && piece <= "\xE2\x80\xAE";
  const bool isolate = piece >= "\xE2\x81\xA6" && piece <= "\xE2\x81\xA9";
  return piece.size() == 3 &&
         (embedding || isolate || piece == "\xE2\x80\x8E" || piece == "\xE2\x80\x8F");
}

}  // namespace

std::string printable(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = sequence_length(bytes, at);
    const std::string_view piece = bytes.substr(at, std::max<std::size_t>(length, 1));
    if (length == 0 || has_control(piece) || turns_around(piece)) {
      for (const char c : piece) out += cat("\\x", to_hex(std::string_view(&c, 1)));
    } else {
      out += piece;
    }
    at += piece.size();
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::optional<std::uint64_t> parse_digits(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string to_hex(std::string_view bytes) {
  std::string out(bytes.size() * 2, '\0');
  char* at = out.data();
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    *at++ = kHexDigits[byte >> 4U];
    *at++ = kHexDigits[byte & 0xFU];
  }
  return out;
}

bool is_hex(std::string_view text) {
  bool all = true;
  for (const char c : text) {
    all &= static_cast<unsigned>(c - '0') < 10U || static_cast<unsigned>(c - 'a') < 6U;
  }
  return all;
}

std::optional<std::string> from_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string out;
  out.reserve(hex.size() / 2);
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const auto high = hex_value(hex[i]);
    const auto low = hex_value(hex[i + 1]);
    if (!high || !low) return std::nullopt;
    out += static_cast<char>(*high << 4U | *low);
  }
  return out;
}

}  // namespace stint
