// Another program run to its end: what it printed, how it ended.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "os/ended.h"

namespace stint::os {

struct ProgramCall {
  std::vector<std::string> argv;         // argv[0] is looked for in PATH
  std::vector<std::string> environment;  // "NAME=value"
  Millis limit{60'000};                  // then it and its process group are killed
  // Our own environment, changed by `environment`; a "NAME" without "=" is taken away.
  bool inherits = false;
  // For programs that might ask somebody: no terminal, nothing but `input` to read, and what they
  // say on stderr is kept instead of shown.
  bool apart = false;
  std::string input = {};  // REQUIRES: apart; at most 16 KiB, what a pipe takes at once
};

struct ProgramEnd {
  End how;
  std::string out;   // stdout, at most 1 MiB
  std::string talk;  // stderr, likewise, of a program that ran apart; else it is ours
};

// Ends with the program itself, even if a process that it left behind keeps its output open.
// Code::Failed: it could not be started. Code::UnknownOutcome: it had to be killed, or nobody saw
// how it ended; it may have done what it was to do.
Result<ProgramEnd> run_program(const ProgramCall& call);

// The path of the running program itself.
std::string own_program();

}  // namespace stint::os
