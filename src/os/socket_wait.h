// Waiting for one socket, for libraries that do their own reading and writing.
#pragma once

#include "base/time.h"

namespace stint::os {

enum class Wanted { Read, Write, Both };

// False: the time was over. An error or an end of the connection counts as ready: the library finds
// out which.
bool wait_socket(int fd, Wanted wanted, MonoTime until);

// Whether something can be read at once, an end included.
bool readable_now(int fd);

}  // namespace stint::os
