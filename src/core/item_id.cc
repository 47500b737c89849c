#include "core/item_id.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace stint::core {
namespace {

// In ASCII order, without letters that people take for others.
constexpr std::string_view kLetters = "0123456789abcdefghjkmnpqrstvwxyz";
constexpr std::size_t kPriorityLetters = 2;
constexpr std::size_t kTimeLetters = 9;
constexpr std::size_t kChanceLetters = 9;
constexpr unsigned kBits = 5;

std::string letters(std::uint64_t number, std::size_t count) {
  std::string out(count, '0');
  for (std::size_t i = count; i-- > 0; number >>= kBits) out[i] = kLetters[number & 31U];
  return out;
}

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

Result<QueueName> QueueName::parse(std::string_view text) {
  const bool good = !text.empty() && text.size() <= kMaxBytes && plain(text.front()) &&
                    std::ranges::all_of(
                        text, [](char c) { return plain(c) || c == '.' || c == '_' || c == '-'; });
  if (good) return QueueName(std::string(text));
  return invalid(
      cat("a queue's name is 1 to ", kMaxBytes,
          " letters, digits, '.', '_' or '-', beginning with a letter or digit; this is ",
          quoted(text.substr(0, kMaxBytes))));
}

Result<ItemId> ItemId::parse(std::string_view text) {
  const auto bad = [&] {
    return invalid(cat(quoted(text.substr(0, 160)),
                       " is not the id of an item: that is a queue's name, a dash and ", kSuffix,
                       " letters, as 'stint queue put' prints it"));
  };
  if (text.size() < kSuffix + 2 || text[text.size() - kSuffix - 1] != '-') return bad();
  const std::string_view suffix = text.substr(text.size() - kSuffix);
  if (suffix.find_first_not_of(kLetters) != suffix.npos) return bad();
  auto queue = QueueName::parse(text.substr(0, text.size() - kSuffix - 1));
  if (!queue) return bad();
  return ItemId(*queue, std::string(suffix));
}

int ItemId::priority() const {
  const auto high = static_cast<int>(kLetters.find(suffix_[0]));
  const auto low = static_cast<int>(kLetters.find(suffix_[1]));
  return kHighestPriority - (high * 32 + low);
}

ItemId ItemIds::make(const QueueName& queue, int priority, WallTime now, Random& random) {
  constexpr std::uint64_t kMask = (std::uint64_t{1} << (kBits * kChanceLetters)) - 1;
  const auto ms = static_cast<std::uint64_t>(std::max<std::int64_t>(to_ms(now), 0));
  if (ms > last_ms_) {
    last_ms_ = ms;
    last_chance_ = random.next() & (kMask >> 1U);  // room to count up within the millisecond
  } else {
    last_chance_ = (last_chance_ + 1 + random.below(1024)) & kMask;
  }
  const auto rank = static_cast<std::uint64_t>(kHighestPriority - priority);
  return {queue, cat(letters(rank, kPriorityLetters), letters(last_ms_, kTimeLetters),
                     letters(last_chance_, kChanceLetters))};
}

}  // namespace stint::core
