#include "os/pump.h"

#include <unistd.h>

#include <cerrno>

namespace stint::os {

Pump::Pump(Fd from, int to, const Clock& clock)
    : from_(std::move(from)),
      to_(to),
      clock_(clock),
      last_(clock.mono().time_since_epoch().count()),
      thread_([this] { loop(); }) {}

Pump::~Pump() { thread_.join(); }

void Pump::loop() {
  char buffer[16384];
  while (true) {
    const ssize_t got = ::read(from_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    last_ = clock_.mono().time_since_epoch().count();
    for (ssize_t done = 0; done < got;) {
      const ssize_t wrote = ::write(to_, buffer + done, static_cast<std::size_t>(got - done));
      if (wrote < 0 && errno == EINTR) continue;
      // Nobody reads us any more: closing our end tells the child so.
      if (wrote <= 0) return;
      done += wrote;
    }
  }
}

}  // namespace stint::os
