// CHECK(condition, why): a bug in this program. Aborts in every build, with the place and the
// reason.
#pragma once

namespace stint {
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const char* why);
}

#define CHECK(condition, why)                                     \
  do {                                                            \
    if (!(condition)) {                                           \
      ::stint::check_failed(__FILE__, __LINE__, #condition, why); \
    }                                                             \
  } while (false)
