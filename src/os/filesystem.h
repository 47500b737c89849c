// What kind of file system a path is on.
#pragma once

#include <string>

#include "base/result.h"

namespace stint::os {

// "ext4", "nfs", ...; an unknown one by its number ("0x6969").
Result<std::string> filesystem_of(const std::string& path);

}  // namespace stint::os
