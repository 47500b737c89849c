#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace stint {

void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "stint: bug at %s:%d: %s is false: %s\n", file, line, condition, why);
  std::abort();
}

}  // namespace stint
