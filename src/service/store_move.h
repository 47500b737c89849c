// Moves all leases, jobs and queues of one store into another, so that tokens go on growing there.
// G1 G12
//
// First the old store is closed: its meta record says where the leases go, and every grant is
// committed on that record, so none can be given any more. Then the records are copied. The new
// store opens last, under a generation that descends from the old one. Cut short anywhere, neither
// store gives a grant, and the same move started again goes on.
#pragma once

#include <string>

#include "base/random.h"
#include "service/store_life.h"
#include "store/seam.h"

namespace stint::service {

struct Move {
  std::string from_name;  // printable
  std::string to_name;
  std::string by;
};

struct Moved {
  std::size_t leases = 0;
  std::size_t grants = 0;  // of the history
  std::size_t fences = 0;  // fences, lists of sealed targets, and acts
  std::size_t slots = 0;   // jobs, slots, ranges, and what `stint once` has recorded
  std::size_t items = 0;   // of queues
  Generation generation;
  Token floor;
};

// Whether `from` can be moved now, as far as it can be said without the other store; changes
// nothing. Code::Held: as below.
Status check_movable(store::Store& from, const Move& move);

// Code::Held: one of the leases is not free, or an item is claimed; nothing was changed. `to` must
// have no records of its own.
Result<Moved> move_leases(store::Store& from, store::Store& to, Anchors* to_anchors, Random& random,
                          const Clock& clock, const Move& move);

}  // namespace stint::service
