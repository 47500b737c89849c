#include "os/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace stint::os {
namespace {

// Another screen, no cursor; and back.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l";
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";

}  // namespace

bool prints_to_terminal() { return ::isatty(STDOUT_FILENO) == 1; }
bool reads_from_terminal() { return ::isatty(STDIN_FILENO) == 1; }

Result<Terminal> Terminal::take() {
  termios before{};
  if (!prints_to_terminal() || ::tcgetattr(STDIN_FILENO, &before) != 0) {
    return Error{Code::Failed, "standard input and output are not a terminal"};
  }
  termios raw = before;
  raw.c_iflag &= ~static_cast<tcflag_t>(ICRNL | IXON);
  // Ctrl-C comes as a key, so that nothing ends before the screen is put back.
  raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG | IEXTEN);
  raw.c_cc[VMIN] = 1;
  raw.c_cc[VTIME] = 0;
  if (::tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) {
    return Error{Code::Failed, "the terminal cannot be set to give single keys"};
  }
  Terminal out;
  out.before_ = before;
  (void)out.write(kEnter);
  return out;
}

Terminal::Terminal(Terminal&& other) noexcept
    : before_(std::exchange(other.before_, std::nullopt)) {}

Terminal::~Terminal() {
  if (!before_) return;
  (void)write(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

int Terminal::fd() const { return STDIN_FILENO; }

TerminalSize Terminal::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {size.ws_col, size.ws_row};
}

std::string Terminal::keys() const {
  std::array<char, 256> buffer{};
  ssize_t got = -1;
  do {
    got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  } while (got < 0 && errno == EINTR);
  return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

bool Terminal::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t done = ::write(STDOUT_FILENO, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  return true;
}

}  // namespace stint::os
