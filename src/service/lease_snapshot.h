// A resource's records at one reading. Shared by lease_service.cc, lease_look.cc and lease_books.cc
// only.
#pragma once

#include <string>

#include "base/text.h"
#include "service/lease_service.h"
#include "service/once_records.h"

namespace stint::service {

inline Error too_busy(const ResourceName& resource) {
  return unavailable(
      cat("the records of ", quoted(resource.text()), " change too fast to be committed to"));
}

inline core::Proof proof_of(const api::Grip& grip) {
  return {.token = grip.token, .claim = grip.claim.hash(), .owner = grip.owner};
}

struct LeaseService::Snapshot {
  std::string resource;
  Seen seen;
  Token floor;
  Generation generation;
  Status usable;  // an error: its leases went to another store, or are on their way into this one
  std::optional<WallTime> store_wall;
  std::optional<Nanos> store_time;
  std::vector<std::string> sealed = {};   // Further::Sealed
  std::vector<std::string> sealing = {};  // those of them that are only about to be sealed
  std::optional<KeptAnswer> kept = {};    // of an earlier request with the same idempotency key
};

// What a verb came to.
struct LeaseService::Settled {
  core::Decision decision;
  Snapshot after;          // as committed; as it was read if nothing was written
  core::Work work_before;  // what the holder before said of its work
  api::Hint hint;
  Millis granted_ttl{0};
  bool replayed = false;  // nothing was decided: `after.kept` is the answer
};

// What a verb would do: decided on what was read, not committed yet.
struct LeaseService::Planned {
  Settled settled;
  std::vector<store::Step> steps = {};  // empty: nothing is to be written
  bool assumed = false;                 // decided without reading
  // Of what changes nothing under an idempotency key: what keeps its answer.
  std::vector<store::Step> standing = {};
};

// A look that does not show the effect settles nothing: it may have happened, and others after it.
Error lost_from_sight(const ResourceName& resource);
// Whether a refusal leaves it open what became of a grant without an answer. `tried`: its token.
bool went_elsewhere(const std::optional<Token>& tried, Token newest);

}  // namespace stint::service
