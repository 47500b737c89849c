#include "store/sqlite/journal.h"

namespace stint::store {
namespace {

constexpr char kFormat = 1;
enum Flags : unsigned char { kRemoved = 1, kTimer = 2 };

void put_number(std::string& out, std::uint64_t number) {
  while (number >= 0x80) {
    out.push_back(static_cast<char>((number & 0x7FU) | 0x80U));
    number >>= 7U;
  }
  out.push_back(static_cast<char>(number));
}

void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out.append(text);
}

// Takes values off the front; not ok() once something did not fit.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  bool ok() const { return ok_; }
  bool done() const { return rest_.empty(); }

  unsigned char byte() {
    const std::string_view one = take(1);
    return one.empty() ? 0 : static_cast<unsigned char>(one.front());
  }
  std::uint64_t number() {
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const unsigned char next = byte();
      out |= static_cast<std::uint64_t>(next & 0x7FU) << shift;
      if ((next & 0x80U) == 0) return out;
    }
    ok_ = false;
    return 0;
  }
  std::string_view text() { return take(number()); }

 private:
  std::string_view take(std::uint64_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return {};
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }
  std::string_view rest_;
  bool ok_ = true;
};

Error damaged() { return unavailable("the store's journal is damaged; restore it from a backup"); }

void put_row(std::string& out, const std::string& key, const Row& row) {
  put_text(out, key);
  unsigned flags = 0;
  if (row.version == 0) flags |= kRemoved;
  if (row.timer) flags |= kTimer;
  out.push_back(static_cast<char>(flags));
  if (row.version == 0) return;
  put_number(out, row.version);
  put_text(out, row.value);
  if (!row.timer) return;
  put_number(out, row.timer->boot);
  put_number(out, static_cast<std::uint64_t>(row.timer->fires_at.count()));
  put_number(out, static_cast<std::uint64_t>(row.timer->ttl.count()));
}

Row take_row(Reader& reader) {
  Row row;
  const unsigned flags = reader.byte();
  if ((flags & kRemoved) != 0) return row;
  row.version = reader.number();
  row.value = reader.text();
  if ((flags & kTimer) == 0) return row;
  StoredTimer timer;
  timer.boot = reader.number();
  timer.fires_at = Nanos(static_cast<std::int64_t>(reader.number()));
  timer.ttl = Millis(static_cast<std::int64_t>(reader.number()));
  row.timer = timer;
  return row;
}

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

}  // namespace

std::string encode_journal_row(std::uint64_t mark, const Mark& now, const Recent& changes) {
  std::string out(1, kFormat);
  put_number(out, mark);
  put_number(out, now.seq);
  put_number(out, static_cast<std::uint64_t>(now.last.count()));
  put_number(out, changes.size());
  for (const auto& [key, row] : changes) put_row(out, key, row);
  return out;
}

Result<JournalRow> decode_journal_row(std::string_view bytes) {
  Reader reader(bytes);
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

Status fold(Database& db, const Recent& all, const Mark& mark, const Position& at) {
  for (const auto& [key, row] : all) {
    if (auto done = row.version == 0 ? remove_row(db, key) : store::put_row(db, key, row); !done) {
      return done;
    }
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
