#include "store/etcd/keys.h"

#include "base/text.h"

namespace stint::store::etcd {
namespace {

constexpr char kEnd = '\0';

}  // namespace

std::string sixteen(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return digits.size() >= 16 ? digits : std::string(16 - digits.size(), '0') + digits;
}

std::string Keys::record(std::string_view key) const { return cat(root_, "r/", key); }

KeyRange Keys::timer(std::string_view key) const {
  return beginning_with(cat(root_, "t/", key, kEnd));
}
std::string Keys::timer_mark(std::string_view key) const {
  return cat(root_, "t/", key, kEnd, 'a');
}
std::string Keys::timer_end(std::string_view key) const { return cat(root_, "t/", key, kEnd, 'b'); }

KeyRange Keys::appended(std::string_view prefix) const {
  return beginning_with(cat(root_, "a/", prefix, kEnd));
}

std::string Keys::bucket(std::string_view prefix, std::uint64_t bucket) const {
  return cat(root_, "a/", prefix, kEnd, sixteen(bucket));
}

std::optional<std::string> Keys::record_of(std::string_view stored) const {
  const std::string front = cat(root_, "r/");
  if (!stored.starts_with(front)) return std::nullopt;
  return std::string(stored.substr(front.size()));
}

std::optional<std::string> Keys::timer_of(std::string_view stored) const {
  const std::string front = cat(root_, "t/");
  if (!stored.starts_with(front) || stored.size() < front.size() + 2) return std::nullopt;
  if (stored[stored.size() - 2] != kEnd) return std::nullopt;
  return std::string(stored.substr(front.size(), stored.size() - front.size() - 2));
}

std::optional<std::string> Keys::append_prefix_of(std::string_view stored) const {
  const std::string front = cat(root_, "a/");
  if (!stored.starts_with(front)) return std::nullopt;
  const std::size_t end = stored.find(kEnd, front.size());
  if (end == stored.npos) return std::nullopt;
  return std::string(stored.substr(front.size(), end - front.size()));
}

std::string mark_value(std::int64_t seconds) {
  return sixteen(static_cast<std::uint64_t>(seconds));
}
std::string end_value(std::int64_t seconds) { return cat(kBetweenMarkAndEnd, mark_value(seconds)); }

std::optional<std::int64_t> seconds_of_mark(std::string_view value) {
  const auto number = parse_digits(value);
  if (!number || value.size() != 16) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

}  // namespace stint::store::etcd
