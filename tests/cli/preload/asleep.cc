// Plays a machine that was suspended, and one whose wall clock was stepped. The file that
// $ASLEEP_FILE names says by how much, in nanoseconds (tests/support/asleep.h). By the sleep
// CLOCK_BOOTTIME and CLOCK_REALTIME are ahead, as after a real suspend, and CLOCK_MONOTONIC is not;
// by the step CLOCK_REALTIME alone. A timer on CLOCK_BOOTTIME whose time came meanwhile fires at
// the wake-up.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

using Word = std::atomic<std::int64_t>;

constexpr std::int64_t kSecond = 1'000'000'000;
// How soon a wait notices that the machine woke up.
constexpr int kSliceMs = 5;

// The absolute times of the boot-time timers, by descriptor; zero: none, or another clock's.
std::array<Word, 4096> timers;
std::array<std::atomic<bool>, 4096> boot_timer;

struct Shared {
  Word asleep;
  Word stepped;
};

// Shared with the test and, after a fork, with every child.
const Shared* shared() {
  static const Shared* const words = []() -> const Shared* {
    const char* path = ::getenv("ASLEEP_FILE");
    const int fd = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    void* page = ::mmap(nullptr, sizeof(Shared), PROT_READ, MAP_SHARED, fd, 0);
    ::close(fd);
    return page == MAP_FAILED ? nullptr : static_cast<const Shared*>(page);
  }();
  return words;
}

std::int64_t asleep() {
  const Shared* words = shared();
  return words == nullptr ? 0 : words->asleep.load();
}

std::int64_t stepped() {
  const Shared* words = shared();
  return words == nullptr ? 0 : words->stepped.load();
}

std::int64_t nanos(const timespec& t) { return t.tv_sec * kSecond + t.tv_nsec; }
timespec spec(std::int64_t ns) { return {.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond}; }

bool known(int fd) { return fd >= 0 && static_cast<std::size_t>(fd) < timers.size(); }

int arm(int fd, std::int64_t at, itimerspec* before) {
  itimerspec wanted{};
  wanted.it_value = spec(std::max<std::int64_t>(at - asleep(), 1));
  return static_cast<int>(::syscall(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &wanted, before));
}

}  // namespace

extern "C" int clock_gettime(clockid_t id, timespec* out) noexcept {
  if (::syscall(SYS_clock_gettime, id, out) != 0) return -1;
  if (id == CLOCK_BOOTTIME) *out = spec(nanos(*out) + asleep());
  if (id == CLOCK_REALTIME) *out = spec(nanos(*out) + asleep() + stepped());
  return 0;
}

// Servers ask so too.
extern "C" int gettimeofday(timeval* __restrict out, void* __restrict) noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  *out = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

extern "C" time_t time(time_t* out) noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

extern "C" int timerfd_create(int clock, int flags) noexcept {
  const int fd = static_cast<int>(::syscall(SYS_timerfd_create, clock, flags));
  if (known(fd)) {
    timers[static_cast<std::size_t>(fd)] = 0;
    boot_timer[static_cast<std::size_t>(fd)] = clock == CLOCK_BOOTTIME;
  }
  return fd;
}

extern "C" int timerfd_settime(int fd, int flags, const itimerspec* wanted,
                               itimerspec* before) noexcept {
  const std::int64_t at = nanos(wanted->it_value);
  const bool ours =
      known(fd) && boot_timer[static_cast<std::size_t>(fd)] && (flags & TFD_TIMER_ABSTIME) != 0;
  if (known(fd)) timers[static_cast<std::size_t>(fd)] = ours ? at : 0;
  if (ours && at != 0) return arm(fd, at, before);
  return static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, wanted, before));
}

// In slices, so that a wake-up is noticed: then the timers that are waited on are set anew.
extern "C" int poll(pollfd* fds, nfds_t count, int timeout) {
  std::int64_t left = timeout;
  while (true) {
    for (nfds_t i = 0; i < count; ++i) {
      if (!known(fds[i].fd)) continue;
      if (const std::int64_t at = timers[static_cast<std::size_t>(fds[i].fd)]; at != 0) {
        arm(fds[i].fd, at, nullptr);
      }
    }
    const std::int64_t slice = left < 0 ? kSliceMs : std::min<std::int64_t>(left, kSliceMs);
    const timespec wait = spec(slice * 1'000'000);
    const int ready =
        static_cast<int>(::syscall(SYS_ppoll, fds, count, &wait, nullptr, sizeof(long)));
    if (ready != 0) return ready;
    if (left >= 0 && (left -= slice) <= 0) return 0;
  }
}
