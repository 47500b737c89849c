// "/path?name=value&...", taken apart strictly.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stint::server {

struct Target {
  std::string path;  // as it came: nothing in a path is ever decoded
  std::map<std::string, std::string> query;
};

// Errors: Invalid (a % without two digits, a name twice, bytes that are not UTF-8).
Result<Target> parse_target(std::string_view target);

}  // namespace stint::server
