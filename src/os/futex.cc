#include "os/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace stint::os {
namespace {

void call(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
          const timespec* longest = nullptr) {
  static_assert(sizeof word == sizeof(std::uint32_t));
  ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, longest, nullptr, 0);
}

}  // namespace

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  call(word, FUTEX_WAIT, value);
}
void futex_wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value, Nanos longest) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
  timespec left{};
  left.tv_sec = seconds.count();
  left.tv_nsec = (longest - seconds).count();
  call(word, FUTEX_WAIT, value, &left);
}
void futex_wake_one(const std::atomic<std::uint32_t>& word) { call(word, FUTEX_WAKE, 1); }
void futex_wake_all(const std::atomic<std::uint32_t>& word) { call(word, FUTEX_WAKE, INT_MAX); }

}  // namespace stint::os
