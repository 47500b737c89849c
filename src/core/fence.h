// The law of one fence: whether a write with a token may land, and what the fence is afterwards.
// Pure.
//
// A guard reads its fence, asks admit() or seal(), and makes the comparison and the write one
// atomic step at the target. A token equal to the fence needs no store. A token above it needs one
// fresh read of the very store that it names: AskStore, then ask again with what was read.
//
//   offered vs fence    no fence / above        equal                       below
//   at-least            by the store's word     admitted                    stale
//   once                by the store's word     unused: admitted            stale
//                                               same key and digest: done
//                                               else: used
//   seal                by the store's word     sealed                      stale
//
//   Equal to the fence of a revocation: never granted, without asking; its own seal is done
//   already.
//
//   The store's word: above the newest issued -> never issued; the newest, but nobody ever claimed
//   it -> never granted (but their own transfer or revoke seals with it); below the newest ->
//   stale, also if this target was not sealed yet. G5 G12
//
//   A fence that lives in the store itself hears the store's word with every offer (`in_store`):
//   there a token below the newest is stale also where it equals the fence. G5
//
//   An operator may move a fence to another resource, or to another store's life (`adopt`): the
//   store's word alone decides then.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/names.h"

namespace stint::core {

struct Fence {
  Generation generation;
  std::string resource;
  Token token;
  bool used = false;   // mode once: this token's write was accepted
  std::string key;     // of that write
  std::string digest;  // of that write
  // Sealed by a revocation, whose token belongs to nobody, for ever. Never together with `used`.
  bool nobodys = false;
};

enum class FenceMode { AtLeast, Once };

// What api::Fences::remember() is told of targets; no matter of the law of a fence.
enum class Sealing {
  Ahead,    // they are about to be sealed
  Stands,   // their fences stand, durable
  Refused,  // their first seal has failed for certain: nothing was made there
  MadeAnew  // their fences were missing, and stand again
};

struct Offer {
  Generation generation;
  std::string resource;
  Token token;  // zero: none was given
  FenceMode mode = FenceMode::AtLeast;
  std::string key;
  std::string digest;
  bool by_order = false;  // seal only: by transfer or revoke, whose token nobody has claimed yet
  bool adopt = false;     // seal only: an operator's word, for a fence of another store's life or
                          // of another resource
  // With adopt: the resource that the fence may be taken from; empty: any.
  std::string adopt_from = {};
  Sealing sealing = Sealing::Ahead;  // remember only
};

// What a fresh read of the store says of the offered resource.
struct Issued {
  Generation generation;
  std::vector<Generation> ancestors;  // the generations that this one descends from
  Token newest;
  bool newest_granted = false;
  bool newest_nobodys = false;  // a revocation's: nobody was or will be granted it
};

enum class Verdict {
  Admitted,
  Done,      // this very write was accepted before; finish it if a crash left it half-way
  AskStore,  // a token above the fence: read the store and ask again
  Stale,
  Used,
  NeverIssued,
  NeverGranted,
  Foreign,   // another resource, or a generation that does not descend from the fence's
  NoToken,   // a fenced target refuses writes without one
  Restored,  // the fence is above anything that its generation has issued: the store went back
};

struct FenceDecision {
  Verdict verdict = Verdict::Stale;
  std::optional<Fence> fence;  // what the fence is to become; empty: unchanged
};

// A token below the fence is refused without asking the store. Who asks it after the fence was read
// may learn more: a fence that its own line cannot have issued means that the store went back. G12
bool shows_restored(const Fence& fence, const Issued& read_later);

// Whether an adoption takes this fence from another resource or store's life.
bool takes_over(const Fence& fence, const Offer& offer);

FenceDecision admit(const std::optional<Fence>& fence, const Offer& offer,
                    const std::optional<Issued>& issued);
// At a fence that is read in one step with what the store has issued.   G5
FenceDecision admit_in_store(const std::optional<Fence>& fence, const Offer& offer,
                             const Issued& issued);
FenceDecision seal_in_store(const std::optional<Fence>& fence, const Offer& offer,
                            const Issued& issued);
FenceDecision seal(const std::optional<Fence>& fence, const Offer& offer,
                   const std::optional<Issued>& issued);

}  // namespace stint::core
