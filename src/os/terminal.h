// A terminal that a program fills: keys as they are pressed, another screen, its size.
#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stint::os {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

bool prints_to_terminal();
bool reads_from_terminal();

// Standard input and output while it lives; the destructor puts everything back.
class Terminal {
 public:
  // Errors: one of the two is no terminal.
  static Result<Terminal> take();
  Terminal(Terminal&& other) noexcept;
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();

  int fd() const;  // readable: there are keys
  TerminalSize size() const;
  // What was typed; empty: the terminal is gone.
  std::string keys() const;
  // False: the terminal is gone.
  bool write(std::string_view text) const;

 private:
  Terminal() = default;
  std::optional<termios> before_;
};

}  // namespace stint::os
