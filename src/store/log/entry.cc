#include "store/log/entry.h"

#include <array>
#include <bit>
#include <cstring>

namespace stint::store::log {
namespace {

constexpr std::uint64_t kEntryMagic = 0x4C544E53U;  // "SNTL"
// Of the words before the body.
enum EntryWord : std::size_t { kLength, kNumber, kBefore, kSynced, kSession, kTime, kVersion };
constexpr std::size_t kEntryWords = 7;
constexpr std::size_t kEntryHead = kEntryWords * 8;

std::size_t padded(std::size_t body) { return (body + kEntryStep - 1) / kEntryStep * kEntryStep; }

// Each word leads to another one.
std::uint64_t mixed_word(std::uint64_t x) {
  x = (x ^ x >> 30U) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27U) * 0x94d049bb133111ebU;
  return (x ^ x >> 31U) + 0x9e3779b97f4a7c15U;
}

std::uint64_t word_at(std::string_view bytes, std::size_t offset) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Finds what a disk does to bytes, four words at a time: one after another would take the processor
// four times as long. Whatever happens to any one word changes it. REQUIRES: whole words.
std::uint64_t entry_check(std::string_view bytes) {
  constexpr std::size_t kLanes = 4;
  std::array<std::uint64_t, kLanes> lanes = {1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + 8 * kLanes <= bytes.size(); at += 8 * kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      lanes[i] = mixed_word(lanes[i] ^ word_at(bytes, at + 8 * i));
    }
  }
  std::uint64_t out = bytes.size();
  for (; at < bytes.size(); at += 8) out = mixed_word(out ^ word_at(bytes, at));
  for (const std::uint64_t lane : lanes) out = mixed_word(out ^ lane);
  return out;
}

}  // namespace

std::size_t entry_size(std::size_t body) { return kEntryHead + padded(body) + 8; }

std::uint64_t append_entry(std::string& out, const LogEntry& entry) {
  const std::size_t start = out.size();
  const std::array<std::uint64_t, kEntryWords> words = {
      kEntryMagic | entry.body.size() << 32U,
      entry.number,
      entry.before,
      entry.synced,
      entry.session,
      static_cast<std::uint64_t>(entry.mark.last.count()),
      entry.mark.seq};
  out.append(reinterpret_cast<const char*>(words.data()), kEntryHead);
  out.append(entry.body);
  out.append(padded(entry.body.size()) - entry.body.size(), '\0');
  const std::uint64_t check = entry_check(std::string_view(out).substr(start));
  out.append(reinterpret_cast<const char*>(&check), sizeof check);
  return check;
}

std::optional<LogEntry> entry_at(std::string_view bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < entry_size(0)) return std::nullopt;
  const auto word = [&](EntryWord which) { return word_at(bytes, offset + which * 8); };
  const std::uint64_t first = word(kLength);
  const std::size_t body = first >> 32U;
  if ((first & 0xFFFFFFFFU) != kEntryMagic || body == 0 || body > kMostBody) return std::nullopt;
  const std::size_t size = entry_size(body);
  if (size > bytes.size() - offset) return std::nullopt;
  const std::uint64_t check = word_at(bytes, offset + size - 8);
  const auto checksum = [](std::string_view words) { return entry_check(words); };
  if (check != checksum(bytes.substr(offset, size - 8))) return std::nullopt;
  return LogEntry{
      .number = word(kNumber),
      .before = word(kBefore),
      .synced = word(kSynced),
      .session = word(kSession),
      .mark = {.seq = word(kVersion), .last = Nanos(static_cast<std::int64_t>(word(kTime)))},
      .body = bytes.substr(offset + kEntryHead, body),
      .check = check,
      .size = size};
}

}  // namespace stint::store::log
