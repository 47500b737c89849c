// One event of a stream, as text/event-stream has it.
#pragma once

#include <string>
#include <string_view>

#include "base/text.h"

namespace stint::server {

// A line end ends a field there, and an empty line the event: who could put one into a field could
// forge a whole event. So a number or a kind with a line end is left out (the data tells it, as
// JSON), and data of several lines is written line by line.
inline std::string event_text(std::string_view number, std::string_view kind,
                              std::string_view data) {
  const auto is_line = [](std::string_view text) {
    return text.find_first_of(std::string_view("\r\n\0", 3)) == text.npos;
  };
  std::string out;
  if (is_line(number)) out += cat("id: ", number, "\n");
  if (is_line(kind)) out += cat("event: ", kind, "\n");
  while (true) {
    const std::size_t end = data.find_first_of("\r\n");
    out += cat("data: ", data.substr(0, end), "\n");
    if (end == data.npos) return out + "\n";
    data.remove_prefix(end + 1);
  }
}

}  // namespace stint::server
