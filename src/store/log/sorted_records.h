// Records in the order of their keys, in blocks: what stands side by side is read side by side, and
// the tree over the blocks is small.
//
// Thread safety: none; its owner has a lock.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/log/record.h"

namespace stint::store::log {

class SortedRecords {
  using Block = std::vector<Record::Ptr>;
  // Each by a key that none of its records is before, and that all of the block before it are.
  using Blocks = std::map<std::string, Block, std::less<>>;

 public:
  // A place between two records; valid until one is added or removed.
  class Place {
   public:
    bool operator==(const Place&) const = default;

   private:
    friend SortedRecords;
    Blocks::const_iterator block_;
    std::size_t at_ = 0;  // below the block's size; 0 at the end
  };

  // REQUIRES: its key is not there.
  Record& insert(Record::Ptr record);
  // REQUIRES: its key is greater than all there are.
  Record& push_back(Record::Ptr record);
  // REQUIRES: its key is there.
  void erase(std::string_view key);

  std::size_t size() const { return size_; }
  Place begin() const;
  Place end() const;
  // Before the first whose key is not less, or is greater.
  Place lower_bound(std::string_view key) const;
  Place upper_bound(std::string_view key) const;
  // The record behind the place, which moves on. REQUIRES: it is not the end.
  const Record& next(Place& place) const;
  // The record before the place, which moves back. REQUIRES: it is not the begin.
  const Record& previous(Place& place) const;
  // Null: there is none.
  const Record* last() const;

 private:
  Blocks::iterator block_of(std::string_view key);
  Blocks::const_iterator block_of(std::string_view key) const;
  Place place(Blocks::const_iterator block, std::size_t at) const;
  void close_up(Blocks::iterator block);
  void remove_block(Blocks::iterator block);

  Blocks blocks_;  // none of them is empty; the first is at ""
  // Where a key of each first byte was changed last: what is appended comes to one place, and is
  // removed at one. Never a block that is gone.
  static constexpr std::size_t kHints = 8;
  std::array<std::optional<Blocks::iterator>, kHints> hints_ = {};
  std::size_t size_ = 0;
};

}  // namespace stint::store::log
