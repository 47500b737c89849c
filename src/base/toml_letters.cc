#include "base/toml_letters.h"

#include <algorithm>

#include "base/text.h"

namespace stint {
namespace {

bool is_ascii_byte(char c) { return static_cast<unsigned char>(c) < 0x80U; }

std::size_t line_end(std::string_view text, std::size_t from) {
  return std::min(text.find('\n', from), text.size());
}

// Behind the string that begins at `from`; an open one ends with its line, or with the text.
std::size_t behind_string(std::string_view text, std::size_t from) {
  const char quote = text[from];
  const std::string three(3, quote);
  const bool lines = text.substr(from).starts_with(three);
  for (std::size_t i = from + (lines ? 3 : 1); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (lines && text.substr(i).starts_with(three)) {
      return i + 3;
    } else if (!lines && (text[i] == quote || text[i] == '\n')) {
      return i + 1;
    }
  }
  return text.size();
}

Error letter_at(std::string_view text, std::size_t at, const std::string& path) {
  const std::string_view before = text.substr(0, at);
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  std::size_t column = 1;
  for (const char c : before.substr(line_begin)) {
    // Bytes that go on with a letter are no column.
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) ++column;
  }
  return invalid(cat(path, ":", std::ranges::count(before, '\n') + 1, ":", column,
                     ": a letter that is not ASCII must stand in quotes"));
}

}  // namespace

Status check_toml_letters(std::string_view text, const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::size_t i = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  while (i < text.size()) {
    if (text[i] == '#') {
      i = line_end(text, i);
    } else if (text[i] == '"' || text[i] == '\'') {
      i = behind_string(text, i);
    } else if (!is_ascii_byte(text[i])) {
      return letter_at(text, i, path);
    } else {
      ++i;
    }
  }
  return {};
}

}  // namespace stint
