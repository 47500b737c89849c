// Records by their key: what finds one without looking at the others.
//
// A table of hashes and pointers with open addressing, in many parts: one that is full grows alone,
// so that no single commit waits for all of them to be moved. The records of one resource have keys
// that differ before the first slash alone, and are asked for together: they stand side by side.
//
// Thread safety: none; its owner has a lock.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "store/log/record.h"

namespace stint::store::log {

class KeyIndex {
 public:
  // Null: there is none.
  Record* find(std::string_view key) const;
  // REQUIRES: its key is not there; the record outlives its place here.
  void insert(Record& record);
  // REQUIRES: its key is there.
  void erase(std::string_view key);

  // For very many at once: those that were gathered are found once settle() was called. One part
  // after another, each of which fits into the processor's cache: several times as fast as
  // insert(). REQUIRES: their keys are not there.
  void expect(std::size_t records);  // about so many
  void gather(Record& record);
  void settle();

 private:
  struct Hash {
    std::uint32_t home = 0;   // of what follows the first slash: part and place
    std::uint32_t whole = 0;  // tells apart what has one home
    bool operator==(const Hash&) const = default;
  };
  struct Slot {
    Hash hash;
    Record* record = nullptr;  // null: free
  };
  // As many slots as a power of two; there is always a free one.
  struct Part {
    std::vector<Slot> slots;
    std::size_t used = 0;
    std::vector<Slot> gathered;
  };
  static constexpr unsigned kPartBits = 8;

  static Hash hash_of(std::string_view key);
  static void place(std::vector<Slot>& slots, const Slot& slot);
  static void resize(Part& part, std::size_t slots);
  // Where it stands, or the free slot where it would.
  static std::size_t seek(const Part& part, const Hash& hash, std::string_view key);
  Part& part_of(const Hash& hash) { return parts_[hash.home >> (32U - kPartBits)]; }
  const Part& part_of(const Hash& hash) const { return parts_[hash.home >> (32U - kPartBits)]; }

  std::array<Part, std::size_t{1} << kPartBits> parts_;
};

}  // namespace stint::store::log
