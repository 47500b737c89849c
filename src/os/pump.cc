#include "os/pump.h"

#include <unistd.h>

#include <cerrno>

#include "base/text.h"
#include "os/clock.h"
#include "os/thread.h"

namespace stint::os {

Pump::Pump(Fd from, int to) : from_(std::move(from)), to_(to), last_(awake().count()) {}

Result<std::unique_ptr<Pump>> Pump::start(Fd from, int to) {
  std::unique_ptr<Pump> pump(new Pump(std::move(from), to));
  auto thread = start_thread("stint-pump", "copy the output", [&pump = *pump] { pump.loop(); });
  if (!thread) return thread.error();
  pump->thread_ = std::move(*thread);
  return pump;
}

Pump::~Pump() {
  if (thread_.joinable()) thread_.join();
}

void Pump::loop() {
  char buffer[16384];
  while (true) {
    const ssize_t got = ::read(from_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    last_ = awake().count();
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
