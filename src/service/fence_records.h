// The records behind api::Fences (service/records.h has the layout): values, and what may stand in
// the names of targets and keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/fences.h"

namespace stint::service {

constexpr std::string_view kSealedPrefix = "sealed/";
constexpr std::string_view kFencePrefix = "fence/";
constexpr std::string_view kActPrefix = "act/";

// The targets that holders of the resource have sealed.
std::string sealed_key(std::string_view resource);
std::string fence_key(std::string_view target);
std::string quiet_key(std::string_view target);
std::string act_key(std::string_view name, std::string_view key);

// The list of a resource's targets. A record without `sealing`, as before there was one: all
// sealed.
struct Remembered {
  std::vector<std::string> sealed;   // sorted; their fences stood once
  std::vector<std::string> sealing;  // sorted; said before the fence, and not yet after it
  std::vector<std::string> all() const;
  bool operator==(const Remembered&) const = default;
};

std::string encode_sealed(const Remembered& targets);
std::string encode(const core::Fence& fence);
std::string encode(const api::Act& act);

// Hostile or damaged values: Code::Unavailable, never a default.
Result<Remembered> decode_sealed(std::string_view value);
Result<core::Fence> decode_fence(std::string_view value);
Result<api::Act> decode_act(std::string_view name, std::string_view key, std::string_view value);
Result<std::int64_t> decode_unsaid(std::string_view value);

// Names come from command lines and requests. Code::Invalid: nothing was changed.
Status check_target(std::string_view target);
Status check_act(std::string_view name, std::string_view key);
Status check_digest(std::string_view digest);
Status check_offer(const core::Offer& offer);
// Words that are remembered as sealed.
Status check_sealed(const Remembered& targets);

}  // namespace stint::service
