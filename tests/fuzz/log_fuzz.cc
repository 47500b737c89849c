// What the disk of a log: store says: entries, the rows in them, the blocks of a snapshot. The
// first byte says which. Built and run by tools/fuzz.sh (libFuzzer); the corpus is replayed by
// `fuzz_replay` in `make test`.
#include <cstdint>
#include <string>
#include <string_view>

#include "store/log/entry.h"
#include "store/log/snapshot.h"
#include "store/log/table.h"
#include "store/row_bytes.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace stint;
using namespace stint::store;
using fuzz::must;

// Entries one after another, as they stand in a segment.
void fuzz_entries(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto entry = log::entry_at(text, at);
    if (!entry) return;
    must(entry->size <= text.size() - at && !entry->body.empty());
    // What was understood is written down the same; only what fills up may be anything.
    std::string again;
    const std::uint64_t check = log::append_entry(again, *entry);
    must(again.size() == entry->size);
    if (again == text.substr(at, entry->size)) {
      must(check == entry->check);
      again[entry->number % again.size()] ^= 1;
      must(!log::entry_at(again, 0));
    }
    at += entry->size;
  }
}

// The body of a commit.
void fuzz_rows(std::string_view text) {
  std::string again;
  RowReader reader(text);
  log::Table table;
  while (reader.ok() && !reader.done()) {
    const std::string key(reader.text());
    Row row = take_row(reader);
    if (!reader.ok()) return;
    pack_row(again, key, row);
    const Version version = row.version;
    table.put(key, std::move(row));
    const Row* found = table.find(key);
    must((found == nullptr ? 0 : found->version) == version);
  }
  if (!reader.ok()) return;
  // Numbers may have been written longer than they need be; the second time they are not.
  std::string third;
  RowReader second(again);
  while (second.ok() && !second.done()) {
    const std::string_view key = second.text();
    pack_row(third, key, take_row(second));
  }
  must(second.ok() && third == again);
}

// The bodies of a snapshot's entries, each with a byte for its length before it.
void fuzz_snapshot(std::string_view text) {
  log::Snapshot snapshot;
  snapshot.bytes = text.size();
  log::TableBuilder rows;
  log::LogEntry entry;
  while (!text.empty()) {
    const std::size_t length = static_cast<unsigned char>(text.front());
    entry.body = text.substr(1, length);
    if (entry.body.empty()) break;
    ++entry.number;
    if (!log::take_entry(entry, snapshot, rows).empty()) return;
    text.remove_prefix(1 + entry.body.size());
  }
  const log::Table table = std::move(rows).finish();
  std::string last;
  std::size_t count = 0;
  table.walk("", table.size(), [&](std::string_view key, const Row& row) {
    must(count == 0 || last < key);
    must(table.find(key) == &row);
    last = key;
    ++count;
  });
  must(count == table.size());
}

}  // namespace

extern "C" int FUZZ_ENTRY(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0: fuzz_entries(text); break;
    case 1: fuzz_rows(text); break;
    default: fuzz_snapshot(text); break;
  }
  return 0;
}
