// Programs whose wall clock is wrong, or is set while they run.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// A wall clock for servers that can be set while they run.
class SetClock {
 public:
  SetClock() { set("+0"); }
  void set(std::string_view offset) const {
    // In one step: whoever reads it meanwhile reads the old one or the new one.
    write_text(folder_.file("new"), offset);
    EXPECT_EQ(::rename(folder_.file("new").c_str(), file().c_str()), 0);
  }
  std::vector<std::pair<std::string, std::optional<std::string>>> environment() const {
    // Servers run as another user.
    EXPECT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
    return {{"LD_PRELOAD", kFaketime},
            {"FAKETIME_TIMESTAMP_FILE", file()},
            {"FAKETIME_NO_CACHE", "1"},
            {"FAKETIME_DONT_FAKE_MONOTONIC", "1"},
            {"NO_FAKE_STAT", "1"}};
  }

 private:
  std::string file() const { return folder_.file("offset"); }
  TempDir folder_;
};

}  // namespace stint::test
