// Programs whose wall clock is wrong.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/support/process.h"

namespace stint::test {

inline constexpr const char* kFaketime = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

// For a test that cannot do without.
#define SKIP_WITHOUT_FAKETIME()                               \
  if (::access(kFaketime, R_OK) != 0) {                       \
    GTEST_SKIP() << "libfaketime is not installed: faketime"; \
  }

// The same command with a wall clock that is this much ahead ("+1h") or behind ("-10y"). Nothing
// else is moved: not CLOCK_BOOTTIME, not the times of files, not timers (preload/real_timers.cc).
inline Command stepped(Command command, const std::string& by) {
  command.env.emplace_back("LD_PRELOAD", std::string(REAL_TIMERS ":") + kFaketime);
  command.env.emplace_back("FAKETIME", by);
  command.env.emplace_back("FAKETIME_DONT_FAKE_MONOTONIC", "1");
  command.env.emplace_back("NO_FAKE_STAT", "1");
  return command;
}

}  // namespace stint::test
