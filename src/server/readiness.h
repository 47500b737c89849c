// Whether the store answers, asked for at most once a second however many want to know: who asks
// /readyz needs no key, and must not be able to fill the queue before the store. The loop's.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"

namespace stint::server {

class Readiness {
 public:
  using Tell = std::function<void(bool ready)>;

  // Tells at once what is fresh, else what is learned next. True: the caller has to look, and to
  // say learned().
  bool ask(Tell tell, MonoTime now) {
    if (last_ && now - at_ < kFresh) {
      tell(*last_);
      return false;
    }
    if (waiting_.size() >= kMostWaiting) {
      tell(false);
      return false;
    }
    waiting_.push_back(std::move(tell));
    return !std::exchange(looking_, true);
  }

  void learned(bool ready, MonoTime now) {
    last_ = ready;
    at_ = now;
    looking_ = false;
    for (const Tell& tell : std::exchange(waiting_, {})) tell(ready);
  }

 private:
  static constexpr Millis kFresh{1000};
  static constexpr std::size_t kMostWaiting = 1000;
  std::optional<bool> last_;
  MonoTime at_{};
  bool looking_ = false;
  std::vector<Tell> waiting_;
};

}  // namespace stint::server
