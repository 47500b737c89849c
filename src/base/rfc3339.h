// Times with an offset, as RFC 3339 writes them: "2026-11-15T06:45:00+01:00".
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace stint {

// An offset is required (Z counts); a fraction of a second may follow. What is finer than a
// millisecond is cut off.
Result<WallTime> parse_rfc3339(std::string_view text);

// To the second. An offset with seconds (local mean time, before 1972) cannot be written: the
// minutes are, and the time is given by them, so that the instant is right.
std::string format_rfc3339(std::chrono::sys_seconds instant, std::chrono::seconds offset);

// "2026-11-15T06:45:00": what a clock shows, wherever it hangs.
std::string format_local(std::chrono::local_seconds time);

}  // namespace stint
