// What stands behind a stint::Client: the open store, and what it was opened with.
//
// Thread safety: any thread; constant after construction but for the store, which looks after
// itself.
#pragma once

#include <memory>
#include <string>

#include "app/opened.h"
#include "app/settings.h"
#include "os/clock.h"
#include "os/random.h"

namespace stint::lib {

struct ClientState {
  os::SystemClock clock;
  os::SystemRandom random;
  app::Settings settings;
  std::string owner;  // empty: settings.owner, else made up
  std::unique_ptr<app::Opened> opened;

  api::Leases& leases() const { return opened->leases(); }
};

}  // namespace stint::lib
