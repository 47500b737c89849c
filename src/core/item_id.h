// The names of queues and of their items.
//
// An item's id is its queue's name, a dash, and twenty letters: two for the priority (the highest
// first), nine for the time, nine by chance. So the items of a queue sort in the order in which
// they are to be claimed, and an id says by itself where its item is to be looked for.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/result.h"
#include "base/time.h"

namespace stint::core {

// 1 to 100 bytes: letters, digits, '.', '_' and '-', the first a letter or digit.
class QueueName {
 public:
  static constexpr std::size_t kMaxBytes = 100;
  static Result<QueueName> parse(std::string_view text);
  const std::string& text() const { return text_; }
  auto operator<=>(const QueueName&) const = default;

 private:
  explicit QueueName(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

constexpr int kLowestPriority = -100;
constexpr int kHighestPriority = 100;

class ItemId {
 public:
  static constexpr std::size_t kSuffix = 20;
  static Result<ItemId> parse(std::string_view text);
  const QueueName& queue() const { return queue_; }
  const std::string& suffix() const { return suffix_; }
  int priority() const;
  std::string text() const { return queue_.text() + "-" + suffix_; }
  auto operator<=>(const ItemId&) const = default;

 private:
  friend class ItemIds;
  ItemId(QueueName queue, std::string suffix)
      : queue_(std::move(queue)), suffix_(std::move(suffix)) {}
  QueueName queue_;
  std::string suffix_;
};

// Makes ids that grow, as far as the clock and the priorities let them. Not thread-safe.
class ItemIds {
 public:
  // REQUIRES: a priority within the bounds.
  ItemId make(const QueueName& queue, int priority, WallTime now, Random& random);

 private:
  std::uint64_t last_ms_ = 0;
  std::uint64_t last_chance_ = 0;
};

}  // namespace stint::core
