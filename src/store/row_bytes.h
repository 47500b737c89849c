// Rows as bytes: numbers in as few bytes as they need, lengths before texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/moment.h"

namespace stint::store {

void pack_number(std::string& out, std::uint64_t number);
void pack_text(std::string& out, std::string_view text);
// A row of version 0: it was removed.
void pack_row(std::string& out, std::string_view key, const Row& row);

// Takes values off the front; not ok() once something did not fit.
class RowReader {
 public:
  explicit RowReader(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool done() const { return rest_.empty(); }

  unsigned char byte();
  std::uint64_t number();
  std::string_view text() { return take(number()); }

 private:
  std::string_view take(std::uint64_t size);
  std::string_view rest_;
  bool ok_ = true;
};

// What follows its key.
Row take_row(RowReader& reader);

// Finds what a disk or a transfer does to bytes; no proof against people.
std::uint64_t checksum(std::string_view bytes);

}  // namespace stint::store
