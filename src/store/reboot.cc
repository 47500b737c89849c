#include "store/reboot.h"

namespace stint::store {

Nanos fires_now(const StoredTimer& timer, const Boots& boots) {
  Nanos fires_at = timer.fires_at;
  for (std::size_t boot = timer.boot; boot + 1 < boots.size(); ++boot) {
    if (fires_at <= boots[boot].last_commit) return Nanos(0);
    fires_at = boots[boot + 1].first_open + timer.ttl;
  }
  return fires_at;
}

}  // namespace stint::store
