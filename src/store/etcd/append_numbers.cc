#include "store/etcd/append_numbers.h"

#include <algorithm>

#include "base/text.h"

namespace stint::store::etcd {
namespace {

constexpr std::size_t kDigits = 16;
constexpr std::string_view kBehindEverything = "\xFF";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits that `text` begins with, filled up to sixteen.
std::uint64_t filled(std::string_view digits, char with) {
  std::string all(digits.substr(0, kDigits));
  all.append(kDigits - all.size(), with);
  return parse_digits(all).value_or(0);
}

std::string_view digits_of(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && count < kDigits && is_digit(text[count])) ++count;
  return text.substr(0, count);
}

// `key` as it stands to the keys that begin with `prefix`.
std::string_view behind(std::string_view key, std::string_view prefix) {
  if (key.starts_with(prefix)) return key.substr(prefix.size());
  return key < prefix ? std::string_view() : kBehindEverything;
}

}  // namespace

std::optional<AppendedKey> split_appended(std::string_view key) {
  if (key.size() <= kDigits) return std::nullopt;
  const std::string_view digits = key.substr(key.size() - kDigits);
  if (!std::ranges::all_of(digits, is_digit)) return std::nullopt;
  return AppendedKey{std::string(key.substr(0, key.size() - kDigits)),
                     parse_digits(digits).value_or(0)};
}

std::uint64_t first_not_before(std::string_view text) {
  const std::string_view digits = digits_of(text);
  if (digits.size() == text.size()) return filled(digits, '0');
  // Sixteen digits and more stand after the sixteen; another character before or after all digits.
  const bool after = digits.size() == kDigits || text[digits.size()] > '9' ||
                     static_cast<unsigned char>(text[digits.size()]) > 0x7F;
  return after ? filled(digits, '9') + 1 : filled(digits, '0');
}

std::uint64_t first_after(std::string_view text) {
  const bool whole = text.size() == kDigits && digits_of(text).size() == kDigits;
  return first_not_before(text) + (whole ? 1 : 0);
}

NumberRange numbers_of(const Store::ScanRange& range, std::string_view prefix) {
  NumberRange out;
  // Either of the two prefixes may be the longer one.
  const std::string_view wanted = behind(range.prefix, prefix);
  if (range.prefix.size() > prefix.size()) {
    out.low = first_not_before(wanted);
    out.high = first_not_before(cat(wanted, kBehindEverything));
  }
  if (range.backwards) {
    if (!range.after.empty()) {
      out.high = std::min(out.high, first_not_before(behind(range.after, prefix)));
    }
  } else if (!range.after.empty()) {
    const std::string_view after = behind(range.after, prefix);
    // A key that stands before the prefix excludes nothing, the prefix itself neither.
    if (!after.empty()) out.low = std::max(out.low, first_after(after));
  }
  return out;
}

}  // namespace stint::store::etcd
