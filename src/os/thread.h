// A thread, or why there is none: a machine out of threads must not end a program that holds a
// lease.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "base/result.h"

namespace stint::os {

// `name`: shown by ps, at most 15 bytes. `purpose`: "renew the lease", for the error.
Result<std::thread> start_thread(const char* name, std::string_view purpose,
                                 std::function<void()> what);

}  // namespace stint::os
