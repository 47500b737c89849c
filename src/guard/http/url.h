// The URL of a proxy, as `seal proxy:URL` and `guard check proxy:URL` take it.
#pragma once

#include <string>

#include "base/result.h"
#include "base/text.h"

namespace stint::guard::http {

// Without the slashes at its end. Errors: Code::Invalid.
inline Result<std::string> base_url(const std::string& text) {
  if (!text.starts_with("http://") && !text.starts_with("https://")) {
    return invalid(cat(quoted(text), " is no proxy: proxy:http://HOST:PORT"));
  }
  return text.substr(0, text.find_last_not_of('/') + 1);
}

}  // namespace stint::guard::http
