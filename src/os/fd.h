// A file descriptor with an owner.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/text.h"

namespace stint::os {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset();
  // Somebody else owns it now.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};
// Never 0, 1 or 2.
Result<Pipe> make_pipe();

// A counter that wakes a poll(): signal() adds one, drain() sets it back to zero.
class EventFd {
 public:
  // Errors: out of descriptors.
  static Result<EventFd> make();
  EventFd();  // the same where there is no way on without one
  explicit EventFd(Fd fd) : fd_(std::move(fd)) {}
  int fd() const { return fd_.get(); }
  void signal();
  void drain();

 private:
  Fd fd_;
};

// Wakes a poll() when its time has come; then drain(). Time asleep does not count.
class AlarmFd {
 public:
  // Errors: out of descriptors.
  static Result<AlarmFd> make();
  explicit AlarmFd(Fd fd) : fd_(std::move(fd)) {}
  int fd() const { return fd_.get(); }
  // Once, from now on; what was set before is gone.
  void set(std::chrono::nanoseconds in);
  void stop() { set(std::chrono::nanoseconds(0)); }
  void drain();

 private:
  Fd fd_;
};

// Whether this many more descriptors can be had now. The error names the limit.
Status spare_descriptors(std::size_t count);

// "opening /x: No such file or directory", from errno.
std::string errno_text(std::string_view doing);
// Of errno, too: Code::Denied where the user's rights forbid it, else Unavailable.
inline Error not_done(std::string_view doing, const std::string& path) {
  const Code code = errno == EACCES || errno == EPERM ? Code::Denied : Code::Unavailable;
  return {code, errno_text(cat(doing, " ", quoted(path)))};
}

}  // namespace stint::os
