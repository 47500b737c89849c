// One store's life: its generation, its floor, and whether it went back in time.       G1 G12
#pragma once

#include <optional>
#include <string>

#include "base/random.h"
#include "service/records.h"
#include "store/seam.h"

namespace stint::service {

// What somebody outside the store remembers of it.
struct Anchor {
  Generation generation;
  std::uint64_t revision = 0;
  Token highest;  // the highest token, of any resource, that was granted through here
};

// Kept outside the store, so that restoring the store does not restore it (app/anchors.h keeps
// files).
class Anchors {
 public:
  virtual ~Anchors() = default;
  virtual Result<std::optional<Anchor>> recall() = 0;
  virtual void remember(const Anchor& anchor) = 0;
};

struct LifeOptions {
  std::optional<Generation> pinned;  // a pinned client never creates a store
  bool may_create = true;
};

struct Life {
  Meta meta;
  store::Version version = 0;
};

// An error if its leases went to another store, or are still on their way into it.
Status check_settled(const Meta& meta);

// An error if the store is not of the generation that this process has seen there: it went back to
// an earlier one, or another store stands in its place.   G12
Status check_same_life(const Meta& meta, const Generation& seen);
// Both.
Status check_usable(const Meta& meta, const Generation& seen);

// The meta record as it stands; empty: there is none.
Result<std::optional<Life>> read_life(store::Store& store);
store::Step set_meta(const Meta& meta, store::Expect expect, store::Version version);

// Reads the meta record, or makes it; refuses a store that is not the one remembered or pinned.
Result<Life> begin_life(store::Store& store, Random& random, WallTime now, Anchors* anchors,
                        const LifeOptions& options);

// Whether the store is the one that is remembered and pinned; one that is empty and that nobody
// remembers is. Changes nothing. G12
Status check_life(store::Store& store, Anchors* anchors, const LifeOptions& options);

// Where tokens go on after the store may have lost the end of what it had acknowledged: above
// everything that can have been issued until then. `tail`: the record Capabilities::tail_record.
// Zero if it is absent.   G1
Result<Token> floor_after_tail(const store::Entry& tail);

// An operator's word that a restored or copied store is to be used: a new generation that descends
// from the old one, and a floor above everything that can have been issued before.
struct Recovery {
  std::string why;
  std::string by;
  Token past;  // at least this far
};
Result<Life> recover(store::Store& store, Random& random, WallTime now, Anchors* anchors,
                     const Recovery& recovery);

}  // namespace stint::service
