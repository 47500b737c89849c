#include "guard/guard.h"

#include <algorithm>

#include "base/text.h"

namespace stint::guard {
namespace {

using Judge = core::FenceDecision (*)(const std::optional<core::Fence>&, const core::Offer&,
                                      const std::optional<core::Issued>&);

// A token below the fence is refused whatever the store says. But a fence that this store cannot
// have issued means that the store went back in time, and that is what its people must hear.   G12
bool store_went_back(const core::Fence& fence, api::Fences* fences, Refused* why) {
  const auto resource = ResourceName::parse(fence.resource);
  if (fences == nullptr || !resource) return false;
  const auto word = fences->word(*resource);
  if (!word) return false;
  why->newest_owner = word->owner;
  return core::shows_restored(fence, word->issued);
}

Result<core::FenceDecision> judge(Judge law, const std::optional<core::Fence>& fence,
                                  const core::Offer& offer, api::Fences* fences, Refused* why) {
  core::FenceDecision decision = law(fence, offer, std::nullopt);
  if (decision.verdict == core::Verdict::AskStore) {
    if (fences == nullptr) {
      return Error{Code::Unavailable,
                   "the store of this token cannot be asked, so the write was "
                   "not admitted; nothing was changed"};
    }
    auto resource = ResourceName::parse(offer.resource);
    if (!resource) return resource.error();
    auto word = fences->word(*resource);
    if (!word) return word.error();
    why->newest_owner = word->owner;
    decision = law(fence, offer, word->issued);
  } else if (decision.verdict == core::Verdict::Stale && fence) {
    if (store_went_back(*fence, fences, why)) decision.verdict = core::Verdict::Restored;
  }
  why->verdict = decision.verdict;
  why->offered = offer.token;
  why->fence = fence;
  return decision;
}

}  // namespace

bool is_refusal(core::Verdict verdict) {
  return verdict != core::Verdict::Admitted && verdict != core::Verdict::Done;
}

Error issued_twice(const Pass& pass, const std::string& target) {
  return unavailable(cat("token ", pass.token.number(), " at ", quoted(target),
                         " was sealed by another holder: the store issued it twice, so it was "
                         "restored unnoticed. Nothing was changed; an operator has to look at the "
                         "store"));
}

Status same_holder(const ClaimHash& made_by, const Pass& pass, const std::string& target) {
  if (made_by.empty() || !pass.claim || made_by.matches(pass.claim->hash())) return {};
  return issued_twice(pass, target);
}

core::Offer offer_of(const Pass& pass, const std::string& digest) {
  return {.generation = pass.generation,
          .resource = pass.resource.text(),
          .token = pass.token,
          .mode = pass.mode,
          .key = pass.key.empty() ? digest : pass.key,
          .digest = digest};
}

Memory memory_of(const api::TokenWord& word, const std::string& target) {
  const auto listed = [&](const std::vector<std::string>& list) {
    return std::ranges::find(list, target) != list.end();
  };
  if (listed(word.sealing)) return Memory::AboutToBeSealed;
  return listed(word.sealed) ? Memory::Sealed : Memory::None;
}

void tell_standing(api::Fences& fences, const SealRequest& request,
                   const std::vector<std::string>& targets, core::Sealing how) {
  if (targets.empty()) return;
  core::Offer offer = offer_of(request.pass, "");
  offer.by_order = request.by_order;
  offer.sealing = how;
  static_cast<void>(fences.remember(offer, targets));
}

bool take_back(api::Fences& fences, const SealRequest& request, const std::string& target) {
  auto word = fences.word(request.pass.resource);
  if (!word || memory_of(*word, target) != Memory::AboutToBeSealed) return false;
  core::Offer offer = offer_of(request.pass, "");
  offer.by_order = request.by_order;
  offer.sealing = core::Sealing::Refused;
  auto verdict = fences.remember(offer, {target});
  if (!verdict || *verdict != core::Verdict::Admitted) return false;
  // Another process may have said that it is about to seal it, too.
  word = fences.word(request.pass.resource);
  return word && memory_of(*word, target) == Memory::None;
}

bool is_present_holder(const api::TokenWord& word, const Pass& pass) {
  return word.live && word.issued.generation == pass.generation &&
         word.issued.newest == pass.token && pass.claim && word.claim.matches(pass.claim->hash());
}

Result<core::FenceDecision> judge_write(const std::optional<core::Fence>& fence, const Pass& pass,
                                        const std::string& digest, api::Fences* fences,
                                        Refused* why) {
  auto decision = judge(core::admit, fence, offer_of(pass, digest), fences, why);
  if (!decision || !pass.warn || !is_refusal(decision->verdict)) return decision;
  why->warned = true;
  return core::FenceDecision{core::Verdict::Admitted, std::nullopt};
}

Result<core::FenceDecision> judge_seal(const std::optional<core::Fence>& fence,
                                       const SealRequest& request, api::Fences* fences,
                                       Refused* why) {
  core::Offer offer = offer_of(request.pass, "");
  offer.by_order = request.by_order;
  offer.adopt = request.adopt.has_value();
  return judge(core::seal, fence, offer, fences, why);
}

}  // namespace stint::guard
