#include "os/begin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>

namespace stint::os {
namespace {

// Written once, before the first thread.
bool ours = false;

// The lowest number that is free, which is `fd`: all below it are there. Where there is no
// /dev/null, the root directory as a mere name: it can neither be read nor written.
void make_standard_descriptor(int fd) {
  int made = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  if (made < 0) made = ::open("/", O_PATH);
  // Another thread of a library's host was quicker: the number is in use, too.
  if (made >= 0 && made != fd) ::close(made);
}

}  // namespace

void make_standard_descriptors() {
  std::array<pollfd, 3> standard = {
      {{STDIN_FILENO, 0, 0}, {STDOUT_FILENO, 0, 0}, {STDERR_FILENO, 0, 0}}};
  if (::poll(standard.data(), standard.size(), 0) == 0) return;
  for (const pollfd& one : standard) {
    if ((one.revents & POLLNVAL) != 0) make_standard_descriptor(one.fd);
  }
}

void begin_program() {
  make_standard_descriptors();
  ::signal(SIGCHLD, SIG_DFL);
  ours = true;
}

bool children_are_ours() { return ours; }

}  // namespace stint::os
