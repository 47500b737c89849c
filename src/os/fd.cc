#include "os/fd.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

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

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{Code::Failed, errno_text("making a pipe")};
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

EventFd::EventFd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  CHECK(fd_, "eventfd: out of descriptors");
}

void EventFd::signal() {
  const std::uint64_t one = 1;
  // It fails only when the counter is full, and then the reader is awake anyway.
  [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

void EventFd::drain() {
  std::uint64_t count = 0;
  [[maybe_unused]] const auto got = ::read(fd_.get(), &count, sizeof count);
}

std::string errno_text(std::string_view doing) {
  const int error = errno;
  return cat(doing, ": ", std::strerror(error));
}

}  // namespace stint::os
