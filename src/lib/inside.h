// The way from a stint::Client to what stands behind it, for the library's other parts.
#pragma once

#include "lib/client_state.h"
#include "stint/stint.h"

namespace stint::lib {

struct Inside {
  static ClientState& state(const Client& client) { return *client.state_; }
};

}  // namespace stint::lib
