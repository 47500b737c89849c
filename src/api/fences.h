// What guards ask of the store: its word on a token, the targets that a resource's holders have
// sealed, and the fences of targets that have no place of their own for one (a proxied upstream,
// `stint admit`). Implemented by service/ on a store, and by client/ over HTTP.
//
// Answers are values; faults are Errors; Code::UnknownOutcome: sent, no answer.
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "base/result.h"
#include "base/time.h"
#include "core/fence.h"

namespace stint::api {

// At most so many targets of one resource are remembered as sealed (and together at most one record
// of the store, 4 KiB): the one that was sealed longest ago makes room.
constexpr std::size_t kMostSealedTargets = 64;
// The names of targets and keys are UTF-8 without control characters, at least one byte long.
constexpr std::size_t kMostTargetBytes = 900;
constexpr std::size_t kMostActNameBytes = 512;
constexpr std::size_t kMostKeyBytes = 256;

// The target whose fence `stint admit NAME` raises.
constexpr const char* kAdmitScheme = "admit:";
inline std::string admit_target(const std::string& name) { return kAdmitScheme + name; }

// One target that is remembered for a resource.
struct SealedTarget {
  std::string words;
  bool stands = false;  // its fence stood once; else it is only about to be sealed
  // Of its last seal or first write under a grant; of one that is about to be sealed: of that word.
  // Zero and empty: not known.
  Token token;
  std::optional<WallTime> at = {};
  Token first_token;  // under which it came on the list
  std::optional<WallTime> since = {};
};

// Why a target is forgotten, and who says so: kept in the ledger.
struct ForgetWord {
  std::string why;
  std::string by;
};

// Names of fences belong to prefixes as resources do: "admit:NAME" by its NAME, a proxy's fence of
// a resource by the resource, any other by the whole of it.
inline std::string_view owned_part(std::string_view target) {
  if (target.starts_with("proxy:") || target.starts_with("proxy-passed:")) {
    const std::size_t hash = target.find('#');
    return hash == target.npos ? target : target.substr(hash + 1);
  }
  const std::string_view admit = kAdmitScheme;
  return target.starts_with(admit) ? target.substr(admit.size()) : target;
}

// What the store says of a resource's newest token, and of who has it: for the guard's decision
// and for the words of its refusal.
struct TokenWord {
  core::Issued issued;
  Owner owner;                      // of the newest token; empty: nobody's
  ClaimHash claim;                  // what its holder would have to show
  bool live = false;                // held, and its timer has not fired: --require-live
  std::optional<Millis> remaining;  // of that
  // The targets that are remembered for the resource, as sealed() tells.
  std::vector<std::string> sealed = {};
  // Those of them that are only about to be sealed. A fence that is missing though its target
  // stands in `sealed` and not here is to be refused like a torn one.
  std::vector<std::string> sealing = {};
  std::vector<SealedTarget> targets = {};  // the same list, with what is known of each; sorted
};

// One use of `stint admit NAME --key K -- CMD`.
struct Act {
  std::string name;
  std::string key;
  Generation generation;
  std::string resource;
  Token token;  // of the latest intent
  Owner owner;
  WallTime begun_at{};
  // Of the highest token that finished; only that one is authoritative.
  std::optional<Token> result_token;
  std::optional<int> exit_code;
  std::string digest;  // of what it printed
  std::optional<WallTime> ended_at;
};

struct FenceAnswer {
  core::Verdict verdict = core::Verdict::Stale;
  std::optional<core::Fence> fence;  // as it stands after the answer
  Owner owner;                       // of the newest token, for the words of a refusal
  std::optional<Act> act = {};       // of begin and finish: as it stands after the answer
};

class Fences {
 public:
  virtual ~Fences() = default;

  // One fresh read of the store. A resource that nobody ever held is NOT an error: newest = 0.
  virtual Result<TokenWord> word(const ResourceName& resource) = 0;

  // The targets that are sealed for the resource or about to be, sorted, in the words of `stint
  // seal TARGET`: what transfer, revoke and the next holder seal.
  virtual Result<std::vector<std::string>> sealed(const ResourceName& resource) = 0;
  // Remembers targets BEFORE they are sealed (Sealing::Ahead), so that transfer and revoke find all
  // that may be; again when their fences stand (Stands): from then on a missing one is an alarm,
  // and `show` tells the token of that seal. Refused strikes those that are only about to be
  // sealed, by one word alone, and no others: what two said Ahead of stays.
  // Only for the resource's newest token (else Stale); again is no change. One too many: the one
  // that was sealed longest ago makes room (event target_forgotten). MadeAnew is Stands with an
  // event, fence_made_anew. REQUIRES: `targets` at most
  // kMostSealedTargets, else Code::Invalid.
  virtual Result<core::Verdict> remember(const core::Offer& offer,
                                         const std::vector<std::string>& targets) = 0;
  // The word of somebody who may acquire the resource that a target is no longer sealed for it. The
  // event target_forgotten goes with it.
  virtual Status forget(const ResourceName& resource, const std::string& target,
                        const ForgetWord& word) = 0;

  // Fences kept in the store, by the name of their target: compare and raise in one commit. G5
  virtual Result<FenceAnswer> admit(const std::string& target, const core::Offer& offer) = 0;
  virtual Result<FenceAnswer> seal(const std::string& target, const core::Offer& offer) = 0;
  virtual Result<std::optional<core::Fence>> fence(const std::string& target) = 0;
  // All of their names, sorted. Errors: Invalid: only who is at the store itself can tell.
  virtual Result<std::vector<std::string>> names() {
    return invalid("the names of all fences are listed at the store itself");
  }

  // `stint admit`, fenced as admit_target(name).
  // The intent, in the same commit as the fence. Done: this key has a result already, or (mode
  // once) this very token had begun it and left no result; nothing was changed, the answer has the
  // act.
  virtual Result<FenceAnswer> begin(const Act& act, const core::Offer& offer) = 0;
  // The result, under the token of the intent. A token below the fence is Stale and leaves nothing:
  // only the result of the highest token is authoritative. REQUIRES: exit_code and ended_at.
  virtual Result<FenceAnswer> finish(const Act& act, const core::Offer& offer) = 0;
  virtual Result<std::optional<Act>> act(const std::string& name, const std::string& key) = 0;
};

}  // namespace stint::api
