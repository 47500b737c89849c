// Several copies of one program, side by side: started together, told the same signals, waited for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/signals.h"

namespace stint::os {

struct CrewEnd {
  int worst = 0;  // the highest exit code; 128 + N: ended by signal N
};

// Every ending signal is passed on to all of them. Returns when the last one has ended. `say` is
// told of each that ended badly: nobody takes its place. Code::UnknownOutcome: nobody saw how one
// ended.
Result<CrewEnd> run_crew(const std::vector<std::string>& argv,
                         const std::vector<std::string>& environment, std::size_t count,
                         Signals& signals, const std::function<void(const std::string&)>& say);

}  // namespace stint::os
