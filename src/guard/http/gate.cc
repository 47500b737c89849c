#include "guard/http/gate.h"

#include <algorithm>
#include <vector>

namespace stint::guard::http {

Gate::Gate(std::optional<core::Fence> fence, const std::optional<core::Fence>& passed,
           MonoTime begun, Millis drain)
    : fence_(std::move(fence)), trusting_from_(begun + drain), drain_(drain) {
  // No token ever raised a fence here: no proxy has let anything through.
  if (!fence_ && !passed) trusting_from_ = begun;
  if (!passed) return;
  passed_ = passed->token;
  const bool stands =
      fence_ && fence_->token == passed_ && fence_->generation == passed->generation;
  if (stands) trusted_ = passed_;
}

std::optional<core::Verdict> Gate::known(const core::Offer& offer, MonoTime now) const {
  if (!fence_ || offer.mode == core::FenceMode::Once) return std::nullopt;
  // An operator may have moved the fence since.
  if (fence_->resource != offer.resource) return std::nullopt;
  const auto decision = core::admit(fence_, offer, std::nullopt);
  if (decision.verdict == core::Verdict::AskStore) return std::nullopt;
  const bool sure = offer.token == newest_ && now < newest_until_;
  if (decision.verdict == core::Verdict::Admitted && !sure) return std::nullopt;
  return decision.verdict;
}

void Gate::newest(Token token, std::uint64_t hearing, MonoTime asked) {
  if (hearing != hearing_) return;
  newest_ = token;
  newest_until_ = asked + kHearing;
}

void Gate::changed() {
  ++hearing_;
  newest_until_ = {};
}

void Gate::learn(const core::Fence& fence) {
  // Answers of the store may overtake each other. Tokens of a later generation go on from those
  // before.
  const bool moved = fence_ && fence_->resource != fence.resource;
  if (!fence_ || moved || fence.token > fence_->token) fence_ = fence;
}

void Gate::passed(Token token) { passed_ = std::max(passed_, token); }

bool Gate::older_under_way(Token token, MonoTime now) const {
  return std::ranges::any_of(under_way_, [&](const auto& one) {
    const UnderWay& it = one.second;
    return it.token < token && (!it.until || now < *it.until);
  });
}

Way Gate::way(Token token, MonoTime now) const {
  if (fence_ && token < fence_->token) return Way::Overtaken;
  if (older_under_way(token, now)) return Way::Wait;
  if (now < trusting_from_ && token != trusted_) return Way::Wait;
  return token == passed_ ? Way::Open : Way::Mark;
}

std::optional<MonoTime> Gate::next_change(MonoTime now) const {
  std::optional<MonoTime> out;
  if (now < trusting_from_) out = trusting_from_;
  for (const auto& [id, one] : under_way_) {
    if (one.until && now < *one.until) out = out ? std::min(*out, *one.until) : *one.until;
  }
  return out;
}

bool Gate::idle(MonoTime now) const {
  // What has had its time stays in the list until the next one leaves.
  return !next_change(now) && std::ranges::all_of(under_way_, [](const auto& one) {
    return one.second.until.has_value();
  });
}

std::uint64_t Gate::enter(Token token, std::function<void()> cut) {
  under_way_.emplace(next_, UnderWay{token, std::nullopt, std::move(cut)});
  return next_++;
}

void Gate::leave(std::uint64_t id, bool answered, MonoTime now) {
  // What has had its time by now is forgotten here.
  std::erase_if(under_way_,
                [&](const auto& one) { return one.second.until && now >= *one.second.until; });
  const auto found = under_way_.find(id);
  if (found == under_way_.end()) return;
  if (answered) {
    under_way_.erase(found);
  } else {
    found->second.until = now + drain_;
    found->second.cut = nullptr;
  }
}

bool Gate::cut_older(Token token) {
  std::vector<std::function<void()>> cuts;
  const auto ended = std::erase_if(under_way_, [&](auto& one) {
    if (!(one.second.token < token)) return false;
    if (one.second.cut) cuts.push_back(std::move(one.second.cut));
    return true;
  });
  for (const auto& cut : cuts) cut();
  return ended > 0;
}

}  // namespace stint::guard::http
