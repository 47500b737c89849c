// What all guards share: who writes, what a refusal says, and how a token above a fence is settled.
//
// A guard stands at one kind of target. It reads the fence, asks core/fence.h, and makes the
// comparison and the write one atomic step at the target (LAW section 4, docs/internals/guards.md).
// It never decides by itself whether a token is good.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "api/fences.h"
#include "base/names.h"
#include "base/result.h"
#include "core/fence.h"

namespace stint::guard {

// What a writer shows: from the environment of a `run`, or from `acquire`.
struct Pass {
  ResourceName resource;
  Token token;
  Generation generation;
  std::optional<Claim> claim;
  Owner owner;
  core::FenceMode mode = core::FenceMode::AtLeast;
  std::string key = {};       // mode once: what makes a repeat the same write; default: the digest
  bool require_live = false;  // also ask the store that the lease has not run out (narrow)
  // STINT_GUARD=warn: a write that would be refused is let through, and told. NOT safe: for finding
  // out what a guard would refuse before it does. A seal takes no notice of it.
  bool warn = false;
};

// A condition of the caller's own that does not hold, though the token may be good; or the word of
// the target's own guard, which is in Refused::detail.
enum class Condition { None, IfMatch, RequireLive, ServerHook };

// A refusal is an answer, not a fault. Nothing was changed at the target.
struct Refused {
  std::string target;
  core::Verdict verdict = core::Verdict::Stale;
  Token offered;
  std::optional<core::Fence> fence;  // as it stands; empty: none, or unreadable
  Owner newest_owner;                // who has the newest token, where the store was asked
  std::string detail;                // what else there is to say
  bool warned = false;               // Pass::warn: it was let through
  Condition condition = Condition::None;
};

struct Written {
  std::string digest = {};             // sha256 of what stands there now, where the guard knows it
  bool already = false;                // mode once: this very write had been accepted before
  std::string narrow = {};             // why the window was not zero this time; empty: it was
  std::optional<Refused> warned = {};  // Pass::warn: what it would have been refused for
};
struct Sealed {
  bool already = false;     // the fence stood at this token before
  bool was_none = false;    // no fence at all stood there, as far as the guard can tell
  std::string narrow = {};  // why the window was not zero this time; empty: it was
};

// What a seal is asked with. Each guard has one: `seal_file`, `seal_directory`, `seal_git`,
// `seal_postgres`; guard/targets.h finds the right one for a target's words.
struct SealRequest {
  Pass pass;
  // transfer and revoke seal with a token that nobody has claimed yet.
  bool by_order = false;
  // An operator's word that a target of another store's life, or one whose fence is torn, is to be
  // used from now on: why, and who says so.
  struct Adoption {
    std::string why;
    std::string by;
  };
  std::optional<Adoption> adopt;
};

// A fence of one's own token that another claim made: the store issued that token twice. `made_by`
// empty: it is not known. G12
Status same_holder(const ClaimHash& made_by, const Pass& pass, const std::string& target);
Error issued_twice(const Pass& pass, const std::string& target);

using WriteAnswer = std::variant<Written, Refused>;
using SealAnswer = std::variant<Sealed, Refused>;

bool is_refusal(core::Verdict verdict);

// The offer that core judges.
core::Offer offer_of(const Pass& pass, const std::string& digest);

// How far a target is remembered for its resource.
enum class Memory { None, AboutToBeSealed, Sealed };
Memory memory_of(const api::TokenWord& word, const std::string& target);
// Tells the store that fences stand, once they do. A failure is no harm: a fence that goes missing
// before the next holder's seal is not noticed then, and is made anew by the present holder.
void tell_standing(api::Fences& fences, const SealRequest& request,
                   const std::vector<std::string>& targets,
                   core::Sealing how = core::Sealing::Stands);
// The first seal of a target has failed for certain, and this process said that it was about to be
// sealed: strikes that, so that later runs do not fail there. True: it is not remembered now.
bool take_back(api::Fences& fences, const SealRequest& request, const std::string& target);

// Whether the store knows the pass as that of the live holder of the newest token. Only that one
// makes a missing fence anew.   G5
bool is_present_holder(const api::TokenWord& word, const Pass& pass);

// Asks core; when core wants the store's word, asks the store once and core again. Never AskStore.
// `fences` null: the store cannot be asked, Code::Unavailable.
// Pass::warn: a write that would be refused is Admitted with the fence unchanged, and `why` says
// `warned`: the guard writes past its own fence, and tells its caller.
Result<core::FenceDecision> judge_write(const std::optional<core::Fence>& fence, const Pass& pass,
                                        const std::string& digest, api::Fences* fences,
                                        Refused* why);
Result<core::FenceDecision> judge_seal(const std::optional<core::Fence>& fence,
                                       const SealRequest& request, api::Fences* fences,
                                       Refused* why);

}  // namespace stint::guard
