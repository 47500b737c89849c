// A program run to its end with our own input and error streams; its output goes on to ours and is
// hashed on the way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "os/ended.h"

namespace stint::os {

struct TeeCall {
  std::vector<std::string> argv;         // argv[0] is looked for in PATH
  std::vector<std::string> environment;  // "NAME=value"
};
struct TeeEnd {
  int exec_error = 0;      // errno; then nothing ran
  std::optional<End> how;  // empty: nothing ran
  std::string digest;      // "sha256:..." of what it printed
  MonoTime started{};      // when it had been started
};

// The child stays in our process group: a terminal's signals reach both. Errors: out of
// descriptors. Code::UnknownOutcome: nobody saw how it ended.
Result<TeeEnd> run_teed(const TeeCall& call);

}  // namespace stint::os
