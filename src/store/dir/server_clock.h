// The file server's clock, as its files show it; never this machine's wall clock.
//
// A file of the store is touched and its ctime read: the server's time at some moment before the
// answer. From there the boot-time clock counts on for a while, so that most reads ask nobody. The
// times of files lag behind the server's clock by a tick of its kernel (or by a second, where a
// file system keeps whole seconds): `grain` is what must pass until no new file can show an earlier
// time.
//
// Thread safety: none; its owner has a lock.
#pragma once

#include <optional>

#include "base/time.h"
#include "os/directory.h"

namespace stint::store::dir {

// A kernel's tick is 10 ms at most; whole seconds show by themselves.
Nanos grain_of(Nanos file_time);

class ServerClock {
 public:
  ServerClock(const Clock& clock, const os::Fd& file) : clock_(clock), file_(file) {}

  // A time that has certainly come at the server: every file that is changed from now on shows a
  // later one. Measured anew after two seconds at the latest. `seen`: the ctime of the newest file
  // that was read. If it is ahead of what is counted here, the clock was set since it was measured,
  // and the answer must show that: a holder that was superseded by it gets no other one.   G4
  Result<Nanos> now(Nanos seen);
  // The ctime of something that was changed just before this call.
  void learn(Nanos file_time);

 private:
  bool must_measure(Nanos seen);

  const Clock& clock_;
  const os::Fd& file_;
  std::optional<Nanos> measured_;  // less the grain
  Nanos ahead_{0};                 // the last `seen` that was measured for
  MonoTime measured_at_{};
  Nanos grain_{0};
  Nanos shown_{0};
};

}  // namespace stint::store::dir
