// Two clocks, two types. MonoTime decides; WallTime is shown to people.
//
// MonoTime counts time asleep too (CLOCK_BOOTTIME): a lease runs out while the laptop sleeps, so
// the holder's own clock must not stop there.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stint {

using Millis = std::chrono::milliseconds;
using Nanos = std::chrono::nanoseconds;

struct MonoClock {};
struct WallClock {};

using MonoTime = std::chrono::time_point<MonoClock, Nanos>;
using WallTime = std::chrono::time_point<WallClock, Millis>;

inline std::int64_t to_ms(WallTime t) { return t.time_since_epoch().count(); }
inline WallTime wall_from_ms(std::int64_t ms) { return WallTime(Millis(ms)); }

class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonoTime mono() const = 0;
  virtual WallTime wall() const = 0;
};

// "250ms", "90s", "5m", "1h30m", "2d". A unit is required; zero, negative and absurd ones are
// refused.
Result<Millis> parse_duration(std::string_view text);
// The same for what may be nothing: "0s" is none.
Result<Millis> parse_duration_or_none(std::string_view text);

// The shortest exact form: "1h30m", "90s" is "1m30s", "250ms".
std::string format_duration(Millis d);

// For people: "18 s", "4 min", "2 h 5 min".
std::string rough_duration(Millis d);

// RFC 3339 in UTC, to the second: "2026-11-15T06:45:00Z".
std::string format_utc(WallTime t);

}  // namespace stint
