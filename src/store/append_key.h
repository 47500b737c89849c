// Keys of appended records: a prefix and a number with leading zeros, so that key order is commit
// order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stint::store {

constexpr std::size_t kAppendDigits = 16;

std::string append_key(std::string_view prefix, std::uint64_t number);
// 0 if `key` is not an appended record of `prefix`.
std::uint64_t append_number(std::string_view prefix, std::string_view key);

}  // namespace stint::store
