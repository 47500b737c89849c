// A file descriptor with an owner.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

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

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> make_pipe();

// A counter that wakes a poll(): signal() adds one, drain() sets it back to zero.
class EventFd {
 public:
  EventFd();
  int fd() const { return fd_.get(); }
  void signal();
  void drain();

 private:
  Fd fd_;
};

// "opening /x: No such file or directory", from errno.
std::string errno_text(std::string_view doing);

}  // namespace stint::os
