#include "report/columns.h"

#include <array>

namespace stint::report {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};
// What sits on the character before it, or is not seen at all.
constexpr std::array<Range, 9> kNone = {{{0x0300, 0x036F},
                                         {0x0483, 0x0489},
                                         {0x0591, 0x05BD},
                                         {0x064B, 0x065F},
                                         {0x200B, 0x200D},
                                         {0x20D0, 0x20FF},
                                         {0xFE00, 0xFE0F},
                                         {0xFE20, 0xFE2F},
                                         {0xE0100, 0xE01EF}}};
constexpr std::array<Range, 12> kWide = {{{0x1100, 0x115F},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0x33FF},
                                          {0x3400, 0x4DBF},
                                          {0x4E00, 0x9FFF},
                                          {0xA000, 0xA4CF},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0x1F300, 0x1FAFF},
                                          {0x20000, 0x3FFFD}}};

template <class Ranges>
bool in(const Ranges& ranges, char32_t c) {
  for (const Range& range : ranges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

std::size_t cells(char32_t c) {
  if (c < 0x300) return 1;
  if (in(kNone, c)) return 0;
  return in(kWide, c) ? 2 : 1;
}

// The character at the front, and how many bytes it has. Broken bytes count one each.
std::pair<char32_t, std::size_t> front(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  std::size_t length = 1;
  if (lead >= 0xF0) {
    length = 4;
  } else if (lead >= 0xE0) {
    length = 3;
  } else if (lead >= 0xC0) {
    length = 2;
  }
  if (length == 1 || text.size() < length) return {U'?', 1};
  char32_t c = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    c = (c << 6U) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  return {c, length};
}

}  // namespace

std::size_t columns_of(std::string_view utf8) {
  std::size_t out = 0;
  while (!utf8.empty()) {
    const auto [c, length] = front(utf8);
    out += cells(c);
    utf8.remove_prefix(length);
  }
  return out;
}

std::string fitted(std::string_view utf8, std::size_t columns) {
  if (columns_of(utf8) <= columns) {
    std::string out(utf8);
    out.append(columns - columns_of(utf8), ' ');
    return out;
  }
  if (columns == 0) return {};
  std::string out;
  std::size_t used = 0;
  while (!utf8.empty()) {
    const auto [c, length] = front(utf8);
    if (used + cells(c) > columns - 1) break;
    used += cells(c);
    out += utf8.substr(0, length);
    utf8.remove_prefix(length);
  }
  out.append(columns - 1 - used, ' ');
  return out + "~";
}

}  // namespace stint::report
