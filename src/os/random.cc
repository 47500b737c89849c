#include "os/random.h"

#include <sys/random.h>

#include "base/check.h"

namespace stint::os {

std::uint64_t SystemRandom::next() {
  std::uint64_t number = 0;
  CHECK(::getrandom(&number, sizeof number, 0) == sizeof number,
        "the kernel gives no random numbers");
  return number;
}

}  // namespace stint::os
