// A record as a dir: store keeps it. Times are the file server's, since 1970.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "base/time.h"
#include "base/timer.h"
#include "store/dir/bytes.h"
#include "store/seam.h"

namespace stint::store::dir {

struct StoredTimer {
  Nanos set_at{0};
  Nanos fires_at{0};
  Millis ttl{0};

  // A clock that was set back never goes back beyond the record's own last time.   G4
  Nanos now(Nanos server) const { return std::max(server, set_at); }
  TimerState state(Nanos server) const {
    return now(server) < fires_at ? TimerState::Running : TimerState::Fired;
  }
};

struct Record {
  std::string value;
  Version version = 0;
  bool appended = false;
  std::optional<StoredTimer> timer;
};

// Empty: removed. (A removal hides what stands in an older table.)
using Slot = std::optional<Record>;

void pack(Packer& out, const Slot& slot);
Slot unpack_slot(Unpacker& in);

}  // namespace stint::store::dir
