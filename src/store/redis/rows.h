// From what the server keeps to what the seam shows, and back: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/redis/resp.h"
#include "store/seam.h"

namespace stint::store::redis {

// The field #now, and the server's clock as it was asked with it.
struct Now {
  std::uint64_t revision = 0;
  std::int64_t raw_us = 0;  // the server's clock
  std::int64_t now_us = 0;  // the time of timers: never goes back
  WallTime wall() const { return WallTime(Millis(raw_us / 1000)); }
  Nanos time() const { return Nanos(now_us * 1000); }
};

// `seconds`, `micros`: the answer to TIME.
Result<Now> read_now(const Reply& field, const Reply& seconds, const Reply& micros);

// A record's field; Nil: absent.
Result<Entry> read_entry(std::string key, const Reply& field, const Now& now);

// The four letters that the script knows a step by: kind, expectation, demand, timer.
std::string step_code(const Step& step);

// Between which members of the sorted set a range lies; nothing: it is empty.
struct Bounds {
  std::string from;
  std::string to;
};
std::optional<Bounds> bounds_of(const Store::ScanRange& range);

}  // namespace stint::store::redis
