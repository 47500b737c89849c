#include "os/fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace stint::os {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

namespace {

// In the place of a standard descriptor it would be taken for one.
Fd above_standard(int fd) {
  if (fd > STDERR_FILENO) return Fd(fd);
  const Fd low(fd);
  return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

}  // namespace

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{Code::Failed, errno_text("making a pipe")};
  Pipe pipe{above_standard(ends[0]), above_standard(ends[1])};
  if (!pipe.read || !pipe.write) return Error{Code::Failed, errno_text("making a pipe")};
  return pipe;
}

Result<EventFd> EventFd::make() {
  Fd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return Error{Code::Failed, errno_text("making an event descriptor")};
  return EventFd(std::move(fd));
}

EventFd::EventFd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(fd_, "eventfd: out of descriptors");
}

void EventFd::signal() {
  const std::uint64_t one = 1;
  // It fails only when the counter is full, and then the reader is awake anyway.
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

namespace {
void take_count(int fd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(fd, &count, sizeof count);
}
}  // namespace

void EventFd::drain() { take_count(fd_.get()); }

Result<AlarmFd> AlarmFd::make() {
  Fd fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!fd) return Error{Code::Failed, errno_text("making a timer descriptor")};
  return AlarmFd(std::move(fd));
}

void AlarmFd::set(std::chrono::nanoseconds in) {
  itimerspec spec{};
  spec.it_value.tv_sec = static_cast<time_t>(in.count() / 1'000'000'000);
  spec.it_value.tv_nsec = in.count() % 1'000'000'000;
  CHECK(::timerfd_settime(fd_.get(), 0, &spec, nullptr) == 0, "timerfd_settime");
}

void AlarmFd::drain() { take_count(fd_.get()); }

Status spare_descriptors(std::size_t count) {
  std::vector<Fd> spare;
  while (spare.size() < count) {
    const int had = spare.empty() ? ::eventfd(0, EFD_CLOEXEC)
                                  : ::fcntl(spare.front().get(), F_DUPFD_CLOEXEC, 0);
    if (had < 0) {
      const std::string why = std::strerror(errno);
      rlimit limit{};
      ::getrlimit(RLIMIT_NOFILE, &limit);
      return Error{Code::Failed,
                   cat("out of file descriptors (", why, "): ", count - spare.size(),
                       " more are needed; the limit is ", limit.rlim_cur, " (ulimit -n)")};
    }
    spare.emplace_back(had);
  }
  return {};
}

std::string errno_text(std::string_view doing) {
  const int error = errno;
  return cat(doing, ": ", std::strerror(error));
}

}  // namespace stint::os
