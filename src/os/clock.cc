#include "os/clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <ctime>

#include "base/check.h"
#include "base/text.h"
#include "os/fd.h"

namespace stint::os {
namespace {

Nanos read_clock(clockid_t id) {
  timespec t{};
  CHECK(::clock_gettime(id, &t) == 0, "the kernel has no such clock");
  return std::chrono::seconds(t.tv_sec) + Nanos(t.tv_nsec);
}

std::string first_line(const char* path) {
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 128> buffer{};
  const ssize_t got = file ? ::read(file.get(), buffer.data(), buffer.size()) : -1;
  if (got <= 0) return {};
  return std::string(trim(std::string_view(buffer.data(), static_cast<std::size_t>(got))));
}

std::string link_target(const char* path) {
  std::array<char, 128> buffer{};
  const ssize_t got = ::readlink(path, buffer.data(), buffer.size());
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
}

}  // namespace

MonoTime SystemClock::mono() const { return MonoTime(read_clock(CLOCK_BOOTTIME)); }

WallTime SystemClock::wall() const {
  return WallTime(std::chrono::duration_cast<Millis>(read_clock(CLOCK_REALTIME)));
}

Nanos awake() { return read_clock(CLOCK_MONOTONIC); }

ClockName clock_name() {
  return {.boot_id = first_line("/proc/sys/kernel/random/boot_id"),
          .time_namespace = link_target("/proc/self/ns/time"),
          .machine_id = first_line("/etc/machine-id")};
}

}  // namespace stint::os
