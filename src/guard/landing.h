// How a stage takes the artifact's place, once: what file and directory guards share after the body
// is staged. Mode once leaves a mark that names the stage before it lands, so that a repeat can
// tell whether the write is still to be finished.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "guard/site.h"

namespace stint::guard {

struct Staged {
  std::string name;
  std::uint64_t inode = 0;
  std::string digest;  // hexadecimal; mode once: needed
  // Open until the answer is known: the number of a removed inode is soon another's.
  os::Fd held;
};

struct Moves {
  // Puts the stage of that name into the artifact's place. An errno.
  std::function<int(const std::string& stage)> put;
  // A further condition, looked at as late as can be; what it refuses with. Null: none.
  std::function<Result<std::optional<Refused>>()> condition = nullptr;
};

// From a staged, synced body to the answer. A stage that does not land is taken away, but for one
// that may land yet: whose outcome is unknown, or which a mark names.
Result<WriteAnswer> land(Site& site, const Pass& pass, const Staged& staged, api::Fences* fences,
                         const Moves& moves);

// A body that could not be staged, and why. A seal that came meanwhile took the half-made stage
// away: that is a refusal, not a fault. (A tree then lacks its folder; NFS calls a file stale.)
Result<WriteAnswer> not_staged(Site& site, const Pass& pass, api::Fences* fences, const Error& why);

// What becomes of a refusal by a fence under Pass::warn: the stage is put in place all the same,
// and no fence is touched. Refused after all where a seal has removed the stage already.
Result<WriteAnswer> past_the_fence(Site& site, const Staged& staged, const Moves& moves,
                                   Refused refusal);
// Whether Pass::warn lets it through: a fence refused it. Conditions of the caller's own stand.
bool let_through(const Refused& refusal, const Pass& pass);

// mode once: what makes a repeat the same write.
Status check_key(const Pass& pass);

}  // namespace stint::guard
