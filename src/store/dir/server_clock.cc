#include "store/dir/server_clock.h"

namespace stint::store::dir {
namespace {

constexpr Nanos kTick = Millis(10);
constexpr Nanos kSecond = Millis(1000);
constexpr Nanos kMeasureEvery = Millis(2000);
// Measurements differ by a grain and a round trip. What is further back is a clock that was set.
constexpr Nanos kJitter = Millis(100);

}  // namespace

Nanos grain_of(Nanos file_time) { return file_time % kSecond == Nanos(0) ? kSecond : kTick; }

// Once for each file that is ahead: where the clock was set back since, it stays ahead.
bool ServerClock::must_measure(Nanos seen) {
  const Nanos since = clock_.mono() - measured_at_;
  if (!measured_ || since > kMeasureEvery) return true;
  if (seen <= *measured_ + since + grain_ + kJitter || seen == ahead_) return false;
  ahead_ = seen;
  return true;
}

Result<Nanos> ServerClock::now(Nanos seen) {
  if (must_measure(seen)) {
    os::FileFacts facts;
    if (const int e = os::touch(file_.get())) {
      return os::file_error("asking the file server for its time", e);
    }
    if (const int e = os::facts_of(file_.get(), facts)) {
      return os::file_error("asking the file server for its time", e);
    }
    learn(facts.changed);
  }
  const Nanos now = *measured_ + (clock_.mono() - measured_at_);
  if (now > shown_ || now < shown_ - kJitter - grain_) shown_ = now;
  return shown_;
}

void ServerClock::learn(Nanos file_time) {
  measured_at_ = clock_.mono();
  grain_ = grain_of(file_time);
  measured_ = file_time - grain_;
}

}  // namespace stint::store::dir
