#include "store/log/sorted_records.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stint::store::log {
namespace {

constexpr std::size_t kMostInABlock = 128;

auto key_of(const Record::Ptr& record) { return record->key(); }

}  // namespace

auto SortedRecords::block_of(std::string_view key) -> Blocks::iterator {
  auto& hint = hints_[key.empty() ? 0 : static_cast<unsigned char>(key.front()) % kHints];
  if (hint && (*hint)->first <= key) {
    const auto next = std::next(*hint);
    if (next == blocks_.end() || key < next->first) return *hint;
  }
  const auto above = blocks_.upper_bound(key);
  const auto found = above == blocks_.begin() ? above : std::prev(above);
  if (found != blocks_.end()) hint = found;
  return found;
}

void SortedRecords::remove_block(Blocks::iterator block) {
  for (auto& hint : hints_) {
    if (hint && *hint == block) hint.reset();
  }
  blocks_.erase(block);
}

auto SortedRecords::block_of(std::string_view key) const -> Blocks::const_iterator {
  const auto above = blocks_.upper_bound(key);
  return above == blocks_.begin() ? above : std::prev(above);
}

Record& SortedRecords::insert(Record::Ptr record) {
  if (blocks_.empty()) return push_back(std::move(record));
  const auto found = block_of(record->key());
  Block& block = found->second;
  const auto at = std::ranges::lower_bound(block, record->key(), {}, key_of);
  Record& out = **block.insert(at, std::move(record));
  ++size_;
  if (block.size() <= kMostInABlock) return out;
  const auto half = block.begin() + kMostInABlock / 2;
  Block upper(std::make_move_iterator(half), std::make_move_iterator(block.end()));
  block.erase(half, block.end());
  std::string bound(upper.front()->key());
  blocks_.emplace_hint(std::next(found), std::move(bound), std::move(upper));
  return out;
}

Record& SortedRecords::push_back(Record::Ptr record) {
  if (blocks_.empty() || blocks_.rbegin()->second.size() >= kMostInABlock) {
    const std::string bound(blocks_.empty() ? "" : record->key());
    blocks_.emplace_hint(blocks_.end(), bound, Block())->second.reserve(kMostInABlock + 1);
  }
  ++size_;
  return *blocks_.rbegin()->second.emplace_back(std::move(record));
}

void SortedRecords::erase(std::string_view key) {
  const auto found = block_of(key);
  Block& block = found->second;
  block.erase(std::ranges::lower_bound(block, key, {}, key_of));
  --size_;
  if (block.size() < kMostInABlock / 4) close_up(found);
}

// Blocks of which little is left become one.
void SortedRecords::close_up(Blocks::iterator found) {
  Block& block = found->second;
  const auto next = std::next(found);
  if (next == blocks_.end()) {
    if (block.empty()) remove_block(found);
    return;
  }
  if (!block.empty() && block.size() + next->second.size() > kMostInABlock / 2) return;
  if (block.empty()) {
    block.swap(next->second);
  } else {
    std::ranges::move(next->second, std::back_inserter(block));
  }
  remove_block(next);
}

auto SortedRecords::place(Blocks::const_iterator block, std::size_t at) const -> Place {
  Place out;
  const bool behind = block != blocks_.end() && at == block->second.size();
  out.block_ = behind ? std::next(block) : block;
  out.at_ = behind ? 0 : at;
  return out;
}

auto SortedRecords::begin() const -> Place { return place(blocks_.begin(), 0); }
auto SortedRecords::end() const -> Place { return place(blocks_.end(), 0); }

auto SortedRecords::lower_bound(std::string_view key) const -> Place {
  if (blocks_.empty()) return end();
  const auto found = block_of(key);
  const auto at = std::ranges::lower_bound(found->second, key, {}, key_of);
  return place(found, static_cast<std::size_t>(at - found->second.begin()));
}

auto SortedRecords::upper_bound(std::string_view key) const -> Place {
  if (blocks_.empty()) return end();
  const auto found = block_of(key);
  const auto at = std::ranges::upper_bound(found->second, key, {}, key_of);
  return place(found, static_cast<std::size_t>(at - found->second.begin()));
}

const Record& SortedRecords::next(Place& place) const {
  const Record& out = *place.block_->second[place.at_];
  place = this->place(place.block_, place.at_ + 1);
  return out;
}

const Record& SortedRecords::previous(Place& place) const {
  if (place.at_ == 0) {
    --place.block_;
    place.at_ = place.block_->second.size();
  }
  return *place.block_->second[--place.at_];
}

const Record* SortedRecords::last() const {
  return blocks_.empty() ? nullptr : blocks_.rbegin()->second.back().get();
}

}  // namespace stint::store::log
