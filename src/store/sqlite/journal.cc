#include "store/sqlite/journal.h"

#include "store/row_bytes.h"

namespace stint::store {
namespace {

constexpr char kFormat = 1;
Error damaged() { return unavailable("the store's journal is damaged; restore it from a backup"); }

struct Folded {
  Position at;
  Mark mark;
};

Result<Folded> read_folded(Database& db) {
  auto query = db.query("SELECT seq, last_ns, folded, folded_mark FROM mark");
  if (!query) return query.error();
  auto row = query->step();
  if (!row) return row.error();
  if (!*row) return unavailable("the store has lost its mark: it is damaged");
  const auto number = static_cast<std::uint64_t>(query->number(2));
  return Folded{.at = {.folded = number,
                       .folded_mark = static_cast<std::uint64_t>(query->number(3)),
                       .top = number},
                .mark = {static_cast<Version>(query->number(0)), Nanos(query->number(1))}};
}

// Reads the rows from number `from` on; false: the first of them is not `known`'s last one.
Result<bool> read_rows(Database& db, std::uint64_t from, const Journal* known, Journal& out) {
  auto query = db.query("SELECT n, changes FROM journal WHERE place >= ? ORDER BY place");
  if (!query) return query.error();
  query->bind(1, static_cast<std::int64_t>(from - out.at.folded));
  bool first = known != nullptr;
  for (std::uint64_t number = from;; ++number) {
    auto there = query->step();
    if (!there) return there.error();
    // What a fold has left behind has a lower number.
    if (!*there || query->number(0) != static_cast<std::int64_t>(number)) return !first;
    const std::string bytes = query->text(1);
    auto row = decode_journal_row(bytes);
    if (!row) return row.error();
    if (first) {
      if (row->mark != known->at.top_mark) return false;
      first = false;
      continue;
    }
    out.at.top = number;
    out.at.top_mark = row->mark;
    out.at.bytes += bytes.size();
    out.mark = row->now;
    for (auto& [key, changed] : row->changes) out.recent.insert_or_assign(key, std::move(changed));
  }
}

Status write_row(Database& db, const std::string& key, const Row& row) {
  return row.version == 0 ? remove_row(db, key) : put_row(db, key, row);
}

}  // namespace

std::string encode_journal_row(std::uint64_t mark, const Mark& now, const Recent& changes) {
  constexpr std::size_t kMostOfARow = 64;  // besides its texts
  std::size_t size = kMostOfARow;
  for (const auto& [key, row] : changes) size += key.size() + row.value.size() + kMostOfARow;
  std::string out;
  out.reserve(size);
  out.push_back(kFormat);
  pack_number(out, mark);
  pack_number(out, now.seq);
  pack_number(out, static_cast<std::uint64_t>(now.last.count()));
  pack_number(out, changes.size());
  for (const auto& [key, row] : changes) pack_row(out, key, row);
  return out;
}

Result<JournalRow> decode_journal_row(std::string_view bytes) {
  RowReader reader(bytes);
  if (reader.byte() != kFormat) return damaged();
  JournalRow row;
  row.mark = reader.number();
  row.now.seq = reader.number();
  row.now.last = Nanos(static_cast<std::int64_t>(reader.number()));
  for (std::uint64_t left = reader.number(); reader.ok() && left > 0; --left) {
    std::string key(reader.text());
    row.changes.insert_or_assign(row.changes.end(), std::move(key), take_row(reader));
  }
  if (!reader.ok() || !reader.done()) return damaged();
  return row;
}

Result<JournalNews> read_journal(Database& db, const Journal* known) {
  auto folded = read_folded(db);
  if (!folded) return folded.error();
  JournalNews news;
  news.journal.at = folded->at;
  news.journal.mark = folded->mark;
  const bool same_table = known != nullptr && known->at.folded == folded->at.folded &&
                          known->at.folded_mark == folded->at.folded_mark;
  if (same_table) {
    news.journal.at = known->at;
    news.journal.mark = known->mark;
    const bool empty = known->at.top == known->at.folded;
    auto read = read_rows(db, empty ? known->at.folded + 1 : known->at.top, empty ? nullptr : known,
                          news.journal);
    if (!read) return read.error();
    news.more = *read;
    if (*read) return news;
    // It went back, and came another way: nothing that was known is worth anything.
    news.journal = {.at = folded->at, .mark = folded->mark, .recent = {}};
  }
  auto read = read_rows(db, folded->at.folded + 1, nullptr, news.journal);
  if (!read) return read.error();
  return news;
}

Status append_row(Database& db, const Position& at, std::string_view row) {
  auto query = db.query("REPLACE INTO journal(place, n, changes) VALUES(?,?,?)");
  if (!query) return query.error();
  query->bind(1, static_cast<std::int64_t>(at.top - at.folded));
  auto done = query->bind(2, static_cast<std::int64_t>(at.top)).bind_bytes(3, row).step();
  if (!done) return done.error();
  return {};
}

Status fold(Database& db, const Gathered& all, const Mark& mark, const Position& at) {
  for (const auto& [key, row] : all.before) {
    if (all.changes.contains(key)) continue;
    if (auto done = write_row(db, key, row); !done) return done;
  }
  for (const auto& [key, row] : all.changes) {
    if (auto done = write_row(db, key, row); !done) return done;
  }
  auto query = db.query("UPDATE mark SET seq = ?, last_ns = ?, folded = ?, folded_mark = ?");
  if (!query) return query.error();
  query->bind(1, static_cast<std::int64_t>(mark.seq)).bind(2, mark.last.count());
  query->bind(3, static_cast<std::int64_t>(at.folded));
  auto done = query->bind(4, static_cast<std::int64_t>(at.folded_mark)).step();
  if (!done) return done.error();
  return {};
}

}  // namespace stint::store
