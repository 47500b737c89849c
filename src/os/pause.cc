#include "os/pause.h"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/check.h"
#include "os/clock.h"
#include "os/fd.h"

namespace stint::os {

void pause_for(Nanos length) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(length);
  timespec t{.tv_sec = seconds.count(), .tv_nsec = (length - seconds).count()};
  while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR) {
  }
}

namespace {

constexpr Millis kLongestSlice{1000};

// Empty: no descriptor can be had.
Fd timer_at(MonoTime until) {
  Fd timer(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer) return timer;
  const Nanos at = std::max(until.time_since_epoch(), Nanos(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at);
  itimerspec spec{};
  spec.it_value = {.tv_sec = seconds.count(), .tv_nsec = (at - seconds).count()};
  CHECK(::timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0, "timerfd_settime");
  return timer;
}

// Without a timer: in slices, so that a suspend is noticed soon after the wake-up.
void poll_in_slices(std::vector<pollfd>& polled, MonoTime until) {
  while (true) {
    const auto left = std::chrono::ceil<Millis>(until - SystemClock().mono());
    const auto slice = std::clamp(left, Millis(0), kLongestSlice);
    const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(slice.count()));
    if (ready > 0 || (ready == 0 && slice == left)) return;
    if (left <= Millis(0)) return;
  }
}

}  // namespace

std::vector<bool> wait_readable(const std::vector<int>& fds, std::optional<MonoTime> until) {
  std::vector<pollfd> polled;
  for (const int fd : fds) polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  // poll()'s own timeout stops in a suspend; a boot-time timer fires at the wake-up.
  Fd timer;
  const bool past = until && SystemClock().mono() >= *until;
  if (until && !past) timer = timer_at(*until);
  if (timer) polled.push_back({.fd = timer.get(), .events = POLLIN, .revents = 0});
  if (until && !timer) {
    poll_in_slices(polled, *until);
  } else {
    while (::poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
    }
  }
  std::vector<bool> ready;
  for (std::size_t i = 0; i < fds.size(); ++i) ready.push_back(polled[i].revents != 0);
  return ready;
}

}  // namespace stint::os
