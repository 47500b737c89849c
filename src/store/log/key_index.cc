#include "store/log/key_index.h"

#include <algorithm>
#include <functional>

namespace stint::store::log {
namespace {

constexpr std::size_t kFewestSlots = 8;

// At most five eighths are used: a search ends soon at a free one, although several have one home.
bool crowded(std::size_t used, std::size_t slots) { return used > slots / 8 * 5; }

}  // namespace

KeyIndex::Hash KeyIndex::hash_of(std::string_view key) {
  const std::hash<std::string_view> hash;
  const std::size_t slash = std::min(key.find('/'), key.size());
  const std::uint64_t first = hash(key.substr(0, slash));
  const std::uint64_t rest = slash == key.size() ? first : hash(key.substr(slash));
  return {.home = static_cast<std::uint32_t>(rest >> 32U),
          .whole = static_cast<std::uint32_t>(rest + first)};
}

std::size_t KeyIndex::seek(const Part& part, const Hash& hash, std::string_view key) {
  const std::size_t mask = part.slots.size() - 1;
  std::size_t at = hash.home & mask;
  while (true) {
    const Slot& slot = part.slots[at];
    if (slot.record == nullptr || (slot.hash == hash && slot.record->key() == key)) return at;
    at = (at + 1) & mask;
  }
}

Record* KeyIndex::find(std::string_view key) const {
  const Hash hash = hash_of(key);
  const Part& part = part_of(hash);
  return part.slots.empty() ? nullptr : part.slots[seek(part, hash, key)].record;
}

// REQUIRES: its key is not there, and one is free.
void KeyIndex::place(std::vector<Slot>& slots, const Slot& slot) {
  const std::size_t mask = slots.size() - 1;
  std::size_t at = slot.hash.home & mask;
  while (slots[at].record != nullptr) at = (at + 1) & mask;
  slots[at] = slot;
}

void KeyIndex::resize(Part& part, std::size_t slots) {
  std::vector<Slot> before(slots);
  before.swap(part.slots);
  for (const Slot& slot : before) {
    if (slot.record != nullptr) place(part.slots, slot);
  }
}

void KeyIndex::insert(Record& record) {
  const Hash hash = hash_of(record.key());
  Part& part = part_of(hash);
  if (crowded(part.used + 1, part.slots.size())) {
    resize(part, std::max(kFewestSlots, part.slots.size() * 2));
  }
  place(part.slots, {.hash = hash, .record = &record});
  ++part.used;
}

// Those behind it that could not have its place move up, so that no search ends too soon.
void KeyIndex::erase(std::string_view key) {
  const Hash hash = hash_of(key);
  Part& part = part_of(hash);
  const std::size_t mask = part.slots.size() - 1;
  std::size_t hole = seek(part, hash, key);
  for (std::size_t at = (hole + 1) & mask; part.slots[at].record != nullptr; at = (at + 1) & mask) {
    const std::size_t home = part.slots[at].hash.home & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    part.slots[hole] = part.slots[at];
    hole = at;
  }
  part.slots[hole] = {};
  --part.used;
}

void KeyIndex::expect(std::size_t records) {
  // The parts do not get equally many.
  const std::size_t each = records / parts_.size() * 9 / 8;
  for (Part& part : parts_) part.gathered.reserve(each);
}

void KeyIndex::gather(Record& record) {
  const Hash hash = hash_of(record.key());
  part_of(hash).gathered.push_back({.hash = hash, .record = &record});
}

void KeyIndex::settle() {
  for (Part& part : parts_) {
    part.used += part.gathered.size();
    std::size_t slots = std::max(kFewestSlots, part.slots.size());
    while (crowded(part.used, slots)) slots *= 2;
    if (slots > part.slots.size()) resize(part, slots);
    for (const Slot& slot : part.gathered) place(part.slots, slot);
    part.gathered = {};
  }
}

}  // namespace stint::store::log
