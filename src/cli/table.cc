#include "cli/table.h"

#include <algorithm>

#include "base/text.h"

namespace stint::cli {

std::size_t width(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : printable(text); }

std::string when(const std::optional<WallTime>& t) { return t ? format_utc(*t) : "-"; }

std::vector<std::string> Table::lines() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::vector<std::string> out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - width(row[i]) + 2, ' ');
    }
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace stint::cli
