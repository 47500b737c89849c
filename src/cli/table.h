// A table for people: columns as wide as their widest cell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace stint::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  // Lines without a trailing newline; the first is the header.
  std::vector<std::string> lines() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// How many columns a terminal gives this text (code points; wide characters count as one).
std::size_t width(std::string_view utf8);

// A cell: "-" where there is nothing; what strangers wrote is made printable.
std::string or_dash(const std::string& text);
std::string when(const std::optional<WallTime>& t);

}  // namespace stint::cli
