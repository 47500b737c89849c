// Something to wait on until records may have changed.
#pragma once

namespace stint {

// Wakes when something that it watches changed after it was made. May wake for nothing. It sleeps
// through a change only if the writer died between its commit and the wake-up: so a waiter also
// looks again after 30 s at the latest.
class Watch {
 public:
  virtual ~Watch() = default;
  virtual int fd() const = 0;      // readable: look again
  virtual void acknowledge() = 0;  // call before looking
};

}  // namespace stint
