// Small text helpers that the standard library of C++20 lacks: joining pieces, UTF-8 checks,
// quoting.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stint {

namespace detail {
inline void append(std::string& out, std::string_view piece) { out += piece; }
inline void append(std::string& out, const char* piece) { out += piece; }
inline void append(std::string& out, char piece) { out += piece; }
template <std::integral Number>
requires(!std::same_as<Number, char> && !std::same_as<Number, bool>) void append(std::string& out,
                                                                                 Number number) {
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number).ptr;
  out.append(buffer, end);
}

// How much room a piece may take.
inline std::size_t room_for(std::string_view piece) { return piece.size(); }
inline std::size_t room_for(char /*piece*/) { return 1; }
template <std::integral Number>
requires(!std::same_as<Number, char> && !std::same_as<Number, bool>) std::size_t
    room_for(Number /*number*/) {
  return 20;
}
}  // namespace detail

// cat("held by ", owner, " for ", 18, " s")
template <class... Pieces>
std::string cat(const Pieces&... pieces) {
  std::string out;
  out.reserve((detail::room_for(pieces) + ... + 0));
  (detail::append(out, pieces), ...);
  return out;
}

bool is_utf8(std::string_view bytes);

// True for C0, DEL and C1 control characters (as UTF-8), and for the line and paragraph separators.
bool has_control(std::string_view utf8);

// For messages: bytes that could harm a terminal or a log line are shown as \xNN.
std::string printable(std::string_view bytes);
struct Quoted {
  std::string operator()(std::string_view bytes) const { return cat('\'', printable(bytes), '\''); }
};
// An object, since a function of this name would be looked up beside std::quoted for a std::string.
inline constexpr Quoted quoted;

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

// Decimal digits only: no sign, no space, no leading or trailing rubbish, no overflow.
std::optional<std::uint64_t> parse_digits(std::string_view text);

std::string to_hex(std::string_view bytes);
bool is_hex(std::string_view text);  // digits and a to f alone
std::optional<std::string> from_hex(std::string_view hex);

}  // namespace stint
