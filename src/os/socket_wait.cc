#include "os/socket_wait.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "os/clock.h"

namespace stint::os {
namespace {

short events_of(Wanted wanted) {
  switch (wanted) {
    case Wanted::Read: return POLLIN;
    case Wanted::Write: return POLLOUT;
    case Wanted::Both: return POLLIN | POLLOUT;
  }
  return POLLIN;
}

}  // namespace

bool wait_socket(int fd, Wanted wanted, MonoTime until) {
  const SystemClock clock;
  pollfd polled{.fd = fd, .events = events_of(wanted), .revents = 0};
  while (true) {
    // A suspend is seen after a second at the latest: poll() does not count it.
    constexpr Millis kSlice{1000};
    const auto left = std::chrono::ceil<Millis>(until - clock.mono());
    const int ms = static_cast<int>(std::clamp(left, Millis(0), kSlice).count());
    const int ready = ::poll(&polled, 1, ms);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;
    if (left <= Millis(0)) return false;
  }
}

bool readable_now(int fd) {
  pollfd polled{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace stint::os
