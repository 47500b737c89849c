#include "core/fence.h"

#include <algorithm>

namespace stint::core {
namespace {

enum class Step { Seal, Write };

bool descends(const Issued& issued, const Generation& from) {
  return std::ranges::find(issued.ancestors, from) != issued.ancestors.end();
}

Fence raised(const Offer& offer, Step step) {
  const bool used = step == Step::Write && offer.mode == FenceMode::Once;
  return {.generation = offer.generation,
          .resource = offer.resource,
          .token = offer.token,
          .used = used,
          .key = used ? offer.key : "",
          .digest = used ? offer.digest : ""};
}

FenceDecision equal_to_fence(const Fence& fence, const Offer& offer, Step step) {
  const bool ordered = step == Step::Seal && offer.by_order;
  if (fence.nobodys && !ordered) return {Verdict::NeverGranted, std::nullopt};
  if (step == Step::Seal || offer.mode == FenceMode::AtLeast) {
    return {Verdict::Admitted, std::nullopt};
  }
  if (!fence.used) return {Verdict::Admitted, raised(offer, step)};
  const bool same = fence.key == offer.key && fence.digest == offer.digest;
  return {same ? Verdict::Done : Verdict::Used, std::nullopt};
}

FenceDecision by_the_stores_word(const Offer& offer, const Issued& issued, Step step) {
  if (issued.generation != offer.generation) return {Verdict::Foreign, std::nullopt};
  if (offer.token > issued.newest) return {Verdict::NeverIssued, std::nullopt};
  if (offer.token < issued.newest) return {Verdict::Stale, std::nullopt};
  const bool ordered = step == Step::Seal && offer.by_order;
  if (!issued.newest_granted && !ordered) return {Verdict::NeverGranted, std::nullopt};
  FenceDecision out{Verdict::Admitted, raised(offer, step)};
  out.fence->nobodys = issued.newest_nobodys;
  return out;
}

FenceDecision judge(const std::optional<Fence>& fence, const Offer& offer,
                    const std::optional<Issued>& issued, Step step) {
  if (!offer.token.issued()) {
    return {fence || step == Step::Seal ? Verdict::NoToken : Verdict::Admitted, std::nullopt};
  }
  // What another store's life or resource left behind counts for nothing once an operator says so.
  if (!fence || (step == Step::Seal && takes_over(*fence, offer))) {
    if (!issued) return {Verdict::AskStore, std::nullopt};
    return by_the_stores_word(offer, *issued, step);
  }
  if (fence->resource != offer.resource) return {Verdict::Foreign, std::nullopt};
  if (fence->generation == offer.generation) {
    if (offer.token < fence->token) return {Verdict::Stale, std::nullopt};
    if (offer.token == fence->token) return equal_to_fence(*fence, offer, step);
  }
  if (!issued) return {Verdict::AskStore, std::nullopt};
  if (fence->generation != offer.generation && !descends(*issued, fence->generation)) {
    return {Verdict::Foreign, std::nullopt};
  }
  if (fence->token > issued->newest) return {Verdict::Restored, std::nullopt};
  if (offer.token <= fence->token) return {Verdict::Stale, std::nullopt};
  return by_the_stores_word(offer, *issued, step);
}

// Numbers go on from those of the generations before.
FenceDecision judge_in_store(const std::optional<Fence>& fence, const Offer& offer,
                             const Issued& issued, Step step) {
  const bool compares = offer.generation == issued.generation || descends(issued, offer.generation);
  FenceDecision decision = judge(fence, offer, issued, step);
  const bool passes = decision.verdict == Verdict::Admitted || decision.verdict == Verdict::Done;
  if (passes && offer.token.issued() && compares && offer.token < issued.newest) {
    return {Verdict::Stale, std::nullopt};
  }
  return decision;
}

}  // namespace

bool takes_over(const Fence& fence, const Offer& offer) {
  if (!offer.adopt) return false;
  if (fence.resource == offer.resource) return fence.generation != offer.generation;
  return offer.adopt_from.empty() || offer.adopt_from == fence.resource;
}

bool shows_restored(const Fence& fence, const Issued& read_later) {
  if (fence.token <= read_later.newest) return false;
  return read_later.generation == fence.generation || descends(read_later, fence.generation);
}

FenceDecision admit(const std::optional<Fence>& fence, const Offer& offer,
                    const std::optional<Issued>& issued) {
  return judge(fence, offer, issued, Step::Write);
}

FenceDecision seal(const std::optional<Fence>& fence, const Offer& offer,
                   const std::optional<Issued>& issued) {
  return judge(fence, offer, issued, Step::Seal);
}

FenceDecision admit_in_store(const std::optional<Fence>& fence, const Offer& offer,
                             const Issued& issued) {
  return judge_in_store(fence, offer, issued, Step::Write);
}

FenceDecision seal_in_store(const std::optional<Fence>& fence, const Offer& offer,
                            const Issued& issued) {
  return judge_in_store(fence, offer, issued, Step::Seal);
}

}  // namespace stint::core
