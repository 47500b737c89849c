#include "probe/clock_look.h"

#include <algorithm>

#include "base/text.h"

namespace stint::probe {
namespace {

using Level = store::Finding::Level;

// Wall clocks are told in whole milliseconds, on both sides.
constexpr Nanos kWallGrain = std::chrono::milliseconds(1);
constexpr Nanos kMostSkew = std::chrono::seconds(2);
// Times of files lag behind their server's clock by a tick of its kernel, or by two.
constexpr Nanos kDriftGrain = std::chrono::milliseconds(50);

// "-12.3 ms"; from a minute on in whole seconds.
std::string signed_text(Nanos length) {
  const auto us = std::chrono::abs(std::chrono::duration_cast<std::chrono::microseconds>(length));
  const bool below = length.count() < 0 && us.count() >= 100;  // not "-0.0 ms"
  const char* sign = below ? "-" : "+";
  if (us >= std::chrono::minutes(1)) return cat(sign, us.count() / 1'000'000, " s");
  return cat(sign, us.count() / 1000, ".", us.count() % 1000 / 100, " ms");
}

std::string bound_text(Nanos bound) { return cat("\u00b1", signed_text(bound).substr(1)); }

}  // namespace

Result<std::optional<ClockLook>> look_at_clock(store::Store& store, const std::string& key,
                                               const Clock& clock) {
  constexpr int kLooks = 5;
  std::optional<ClockLook> best;
  for (int i = 0; i < kLooks; ++i) {
    const WallTime wall = clock.wall();
    const MonoTime before = clock.mono();
    auto reading = store.read({key});
    const MonoTime after = clock.mono();
    if (!reading) return reading.error();
    if (!reading->store_time) return std::optional<ClockLook>();
    const Nanos half = (after - before) / 2;
    if (best && best->bound <= half) continue;
    best = ClockLook{.at = before + half, .store_time = *reading->store_time, .bound = half};
    if (reading->store_wall) best->ahead = Nanos(*reading->store_wall - wall) - half;
  }
  return best;
}

store::Finding skew_finding(const ClockLook& look) {
  const Nanos skew = look.ahead.value_or(Nanos(0));
  const Nanos bound = look.bound + kWallGrain;
  const std::string told = cat("the store's clock is ", signed_text(skew), " from this machine's (",
                               bound_text(bound), ")");
  if (std::chrono::abs(skew) - bound <= kMostSkew) return {Level::Ok, "skew", told};
  return {Level::Warn, "skew",
          cat(told, ": no lease depends on it, but times shown to people and schedules do; set ",
              "both clocks right")};
}

store::Finding drift_finding(const ClockLook& first, const ClockLook& last) {
  const Nanos passed = last.at - first.at;
  const Nanos drift = (last.store_time - first.store_time) - passed;
  const Nanos bound = first.bound + last.bound;
  const std::string told =
      cat("in ", signed_text(passed).substr(1), " the store's clock went ", signed_text(drift),
          " away from this machine's (", bound_text(bound), ")");
  if (std::chrono::abs(drift) - bound <= std::max(kDriftGrain, passed / 1000)) {
    return {Level::Ok, "drift", told};
  }
  return {Level::Warn, "drift",
          cat(told,
              ": holders allow for a thousandth; a lease may end before its holder expects "
              "it, and only guards hold then")};
}

}  // namespace stint::probe
