// An idempotency key: who asks again with the same key gets the answer of the first time, and
// nothing is done twice. Key and answer are written in the same commit as what was done; a refusal
// writes nothing, so a refused call is decided anew.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"

namespace stint::api {

struct Once {
  std::string key;     // hexadecimal digits: made from the caller's key and who the caller is
  std::string digest;  // of the method and the body: another body under the same key is refused
};

// How long an answer is kept at least.
constexpr Millis kOnceKept{std::chrono::hours(25)};

inline Error once_mismatch() {
  return invalid(
      "this idempotency key was used for another request. Use a new key for a new request. "
      "Nothing was done.");
}
inline bool is_once_mismatch(const Error& error) {
  return error.code == Code::Invalid &&
         error.message.find("this idempotency key was used") != std::string::npos;
}

}  // namespace stint::api
