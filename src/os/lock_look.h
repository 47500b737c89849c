// Whether the locks that a store on files needs hold in a folder.
#pragma once

#include <string>

#include "base/result.h"

namespace stint::os {

// Tries both kinds (flock, fcntl) in a file of its own, which it removes. Errors: what does not
// hold; no file can be made there.
Status locks_hold_in(const std::string& folder);

}  // namespace stint::os
