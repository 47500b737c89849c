// A machine that can be suspended, and whose wall clock can be stepped: a file that the preloaded
// clocks (tests/cli/preload/asleep.cc) of every program that is started with its environment look
// into.
#pragma once

#include <string>

#include "tests/support/process.h"

namespace stint::test {

class Machine {
 public:
  explicit Machine(std::string file);

  // The command as a program of this machine. `preload` is the path of the preloaded library.
  Command here(Command command, const std::string& preload) const;
  // All of them wake up from a sleep of this length. MONOTONIC time did not go on meanwhile.
  void suspend(Millis length);
  // The wall clock of all of them is this much ahead of the real one, or behind; no other is.
  void step_wall(Nanos by);

 private:
  void write() const;

  std::string file_;
  Nanos asleep_{0};
  Nanos stepped_{0};
};

}  // namespace stint::test
