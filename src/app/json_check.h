// Whether a text is JSON.
#pragma once

#include <string_view>

#include "base/result.h"

namespace stint::app {

Status check_json(std::string_view text);

}  // namespace stint::app
