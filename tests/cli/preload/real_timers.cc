// Loaded before libfaketime, which shifts every absolute timerfd by the step of the wall clock,
// also one on CLOCK_BOOTTIME, which no step moves: a fault of that library, not of the clocks it
// plays.
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

extern "C" int timerfd_settime(int fd, int flags, const itimerspec* wanted, itimerspec* before) {
  return static_cast<int>(::syscall(SYS_timerfd_settime, fd, flags, wanted, before));
}
