// The numbers that appended records are shown under: the revision that appended them, and which one
// of its commit. Sixteen digits; their order is the order of the commits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/seam.h"

namespace stint::store::etcd {

constexpr std::uint64_t kPerRevision = 100;
static_assert(Store::kMaxSteps <= kPerRevision);
constexpr std::uint64_t kNumbersEnd = 10'000'000'000'000'000;  // above every number

struct AppendedKey {
  std::string prefix;
  std::uint64_t number = 0;
};
// Empty: it does not end in sixteen digits.
std::optional<AppendedKey> split_appended(std::string_view key);

// Numbers whose text stands after `text`, and those not before it: the least such one.
std::uint64_t first_after(std::string_view text);
std::uint64_t first_not_before(std::string_view text);

// The numbers under `prefix` that a scan asks for: from `low`, below `high`.
struct NumberRange {
  std::uint64_t low = 0;
  std::uint64_t high = kNumbersEnd;
};
NumberRange numbers_of(const Store::ScanRange& range, std::string_view prefix);

}  // namespace stint::store::etcd
