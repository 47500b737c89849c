// The kinds of fault and refusal that leave the program, in one place.
//
// The words are those of the outer contract (docs/reference/errors.md): the same in the library, in
// HTTP bodies, in `--json` and in logs. Exit codes are derived from them in cli/exit_codes.h.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace stint {

enum class Code {
  Held,            // another holds it
  Lost,            // not, or no longer, the holder
  Stale,           // a guard has seen a higher token
  Used,            // this token's one write was made already
  NeverIssued,     // a token above anything issued
  NeverGranted,    // a token that nobody ever claimed (a revocation's)
  Foreign,         // a token of another store's life
  NoToken,         // a fenced target, and no token given
  UnknownOutcome,  // sent, no answer: it may or may not have happened
  Unavailable,     // store or target unreachable or unusable
  Invalid,         // the caller's input is wrong; nothing was changed
  Denied,          // not allowed
  Failed,          // everything else
};

std::string_view word(Code code);

// A fault of the world. `code` is for programs, `message` for people.
struct Error {
  Code code = Code::Failed;
  std::string message;

  // "while renewing 'db/main': ..."; each room's edge adds what it was doing.
  [[nodiscard]] Error during(std::string_view what) &&;
};

inline Error invalid(std::string message) { return {Code::Invalid, std::move(message)}; }
inline Error unavailable(std::string message) { return {Code::Unavailable, std::move(message)}; }

}  // namespace stint
