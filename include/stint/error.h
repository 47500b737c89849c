// The library's errors are the program's own. This file only stands in for them in the source tree:
// src/base/error.h itself is installed under this name.
#pragma once

#include "../../src/base/error.h"  // IWYU pragma: export
