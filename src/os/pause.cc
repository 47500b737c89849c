#include "os/pause.h"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/check.h"
#include "os/fd.h"

namespace stint::os {

void pause_for(Nanos length) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(length);
  timespec t{.tv_sec = seconds.count(), .tv_nsec = (length - seconds).count()};
  while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR) {
  }
}

std::vector<bool> wait_readable(const std::vector<int>& fds, std::optional<MonoTime> until) {
  std::vector<pollfd> polled;
  for (const int fd : fds) polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  // poll()'s own timeout stops in a suspend; a boot-time timer fires at the wake-up.
  Fd timer;
  if (until) {
    timer = Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    CHECK(timer, "timerfd: out of descriptors");
    const Nanos at = std::max(until->time_since_epoch(), Nanos(1));
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at);
    itimerspec spec{};
    spec.it_value = {.tv_sec = seconds.count(), .tv_nsec = (at - seconds).count()};
    CHECK(::timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0,
          "timerfd_settime");
    polled.push_back({.fd = timer.get(), .events = POLLIN, .revents = 0});
  }
  while (::poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
  }
  std::vector<bool> ready;
  for (std::size_t i = 0; i < fds.size(); ++i) ready.push_back(polled[i].revents != 0);
  return ready;
}

}  // namespace stint::os
