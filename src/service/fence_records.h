// The records behind api::Fences (service/records.h has the layout): values, and what may stand in
// the names of targets and keys.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/fences.h"

namespace stint::service {

constexpr std::string_view kSealedPrefix = "sealed/";
constexpr std::string_view kSealsPrefix = "seals/";
constexpr std::string_view kFencePrefix = "fence/";
constexpr std::string_view kActPrefix = "act/";

// The targets that holders of the resource have sealed.
std::string sealed_key(std::string_view resource);
// When each of them was sealed: apart from the list, which every acquire reads.
std::string seals_key(std::string_view resource);
std::string fence_key(std::string_view target);
std::string quiet_key(std::string_view target);
std::string act_key(std::string_view name, std::string_view key);

// When a target was sealed last, and since when it is remembered. In whole seconds.
struct SealTime {
  Token token;
  WallTime at{};
  Token first;
  WallTime since{};
  bool shared = false;  // two said that they are about to seal it: neither can strike it
  bool operator==(const SealTime&) const = default;
};

// The list of a resource's targets. A record without `sealing`, as before there was one: all
// sealed.
struct Remembered {
  std::vector<std::string> sealed;   // sorted; their fences stood once
  std::vector<std::string> sealing;  // sorted; said before the fence, and not yet after it
  std::map<std::string, SealTime> times = {};  // by seal_name(); what is missing is not known
  std::vector<std::string> all() const;
  bool operator==(const Remembered&) const = default;
  bool same_lists(const Remembered& other) const {
    return sealed == other.sealed && sealing == other.sealing;
  }
};

// How a target is named in Remembered::times.
std::string seal_name(std::string_view target);
// sealed/R and seals/R.
std::string encode_sealed(const Remembered& targets);
std::string encode_seals(const Remembered& targets);
// Takes away what was sealed longest ago until the rest can be kept, but for `keep`; tells which.
std::vector<std::string> make_room(Remembered& targets, const std::vector<std::string>& keep);
std::string encode(const core::Fence& fence);
std::string encode(const api::Act& act);

// Hostile or damaged values: Code::Unavailable, never a default.
Result<Remembered> decode_sealed(std::string_view value);
Result<std::map<std::string, SealTime>> decode_seals(std::string_view value);
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
