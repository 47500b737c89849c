// An idempotency key: who asks again with the same key gets the answer of the first time, and
// nothing is done twice. Key and answer are written in the same commit as what was done; a refusal
// writes nothing, so a refused call is decided anew.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/result.h"
#include "base/time.h"

namespace stint::api {

struct Once {
  std::string key;     // hexadecimal digits: made from the caller's key and who the caller is
  std::string digest;  // of the method and the body: another body under the same key is refused
};

// How long an answer is kept at least.
constexpr Millis kOnceKept{std::chrono::hours(25)};

// What is known of a key.
struct Bound {
  bool before = false;  // the same request was asked for already
  std::string body;     // its answer; empty: none was kept
  bool done = false;    // it was done, and its answer was not kept
  Millis age{0};
};

class KeptAnswers {
 public:
  virtual ~KeptAnswers() = default;
  // Errors: once_mismatch().
  virtual Result<Bound> find(const Once& once) = 0;

  // ---- for what is not one commit of the store (plain files, the janitor's round): the key is
  // bound to its request before, and the answer is kept after. Whoever dies in between leaves a key
  // without an answer: then what is by nature the same however often is asked again, and of
  // anything else it is said that its outcome is unknown.
  // Errors: once_mismatch().
  virtual Result<Bound> bind(const Once& once) = 0;
  // The first answer that is kept stands: `before` says that it was another's, with its body.
  virtual Result<Bound> keep(const Once& once, const std::string& body) = 0;
  // It was refused: nothing was done, and the next time it is decided anew.
  virtual Status forget(const Once& once) = 0;
};

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
