// An entry of the log: what one commit changed, with a number, a checksum, and the checksum of the
// entry before it.
//
// The chain says where the log ends: what stands behind the last entry that follows from the one
// before it, was left there by an earlier use of the space, or never became whole. `synced` tells
// the two kinds of an end apart: an entry that is missing although a later one knew it to be synced
// was damaged, not cut short.
//
// A snapshot is written in entries, too: then an entry is a block of records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/moment.h"

namespace stint::store::log {

enum class EntryKind : char {
  Commit = 'C',  // rows
  Boots = 'B',   // all boots under which the store was opened
  Head = 'H',    // of a snapshot
  Rows = 'R',
  End = 'E',
};

// The end of the log at some moment: the place behind an entry.
struct Place {
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t number = 0;  // of that entry
  std::uint64_t check = 0;   // its checksum
};

struct LogEntry {
  std::uint64_t number = 0;
  std::uint64_t before = 0;   // the checksum of the entry before
  std::uint64_t synced = 0;   // the last number that was known to be synced then
  std::uint64_t session = 0;  // random, of the opening: what is written twice never looks the same
  Mark mark;                  // after it
  std::string_view body;      // its first byte is the kind
  std::uint64_t check = 0;
  std::size_t size = 0;  // all of its bytes
};

constexpr std::size_t kMostBody = std::size_t{16} << 20U;
constexpr std::size_t kEntryStep = 8;  // entries begin at multiples of this

std::size_t entry_size(std::size_t body);
// Returns its checksum.
std::uint64_t append_entry(std::string& out, const LogEntry& entry);
// What begins there and is whole by its own checksum; nothing: no entry does.
std::optional<LogEntry> entry_at(std::string_view bytes, std::size_t offset);
inline bool follows(const LogEntry& entry, const Place& last) {
  return entry.number == last.number + 1 && entry.before == last.check;
}

}  // namespace stint::store::log
