// Signals as something to wait on, and the mask that children get back.
#pragma once

#include <signal.h>

#include <optional>

#include "os/fd.h"

namespace stint::os {

// Blocks the signals that a supervisor handles, before the first thread, and reads them from a
// descriptor. One for the program.
class Signals {
 public:
  // Errors: out of descriptors.
  static Result<Signals> make();
  int fd() const { return fd_.get(); }

  struct Received {
    int number = 0;
    bool from_terminal = false;  // the kernel sent it to the whole foreground group
  };
  std::optional<Received> take();

  // What the program was started with; children get it.
  const sigset_t& original_mask() const { return original_; }

 private:
  Signals() = default;
  Fd fd_;
  sigset_t original_{};
};

}  // namespace stint::os
