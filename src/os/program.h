// Another program run to its end: what it printed, how it ended.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace stint::os {

struct ProgramCall {
  std::vector<std::string> argv;         // argv[0] is looked for in PATH
  std::vector<std::string> environment;  // "NAME=value"
  Millis limit{60'000};                  // then it and its process group are killed
};

struct ProgramEnd {
  int exit_code = 0;  // 128 + N: killed by signal N
  std::string out;    // stdout, at most 1 MiB; stderr is ours
};

// Code::Failed: it could not be started, or had to be killed.
Result<ProgramEnd> run_program(const ProgramCall& call);

// The path of the running program itself.
std::string own_program();

}  // namespace stint::os
