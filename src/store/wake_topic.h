// Every key's wake-up topic: what stands between the first slash and a unit separator, so that the
// records of one resource share one; appended records share their prefix's.
#pragma once

#include <string_view>

namespace stint::store {

inline std::string_view wake_topic(std::string_view key) {
  const std::size_t slash = key.find('/');
  std::string_view rest = slash == std::string_view::npos ? key : key.substr(slash + 1);
  rest = rest.substr(0, rest.find('\x1F'));
  return rest.empty() ? key : rest;
}

}  // namespace stint::store
