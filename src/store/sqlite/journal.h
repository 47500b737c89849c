// What commits have changed since the table of records was last brought up to date.
//
// A commit changes a handful of small records in as many places of the table, and writing them
// there one by one is most of what it costs. So a transaction appends one row to the journal with
// all that it changed, and once in a while a transaction writes what has gathered into the table
// and empties the journal (folds). What the file holds is the table with the journal over it.
//
// Rows are numbered from 1 on, for ever. Whoever knows the rows up to some number reads only those
// behind it; the marks say that the number still means the same row. A fold leaves them where they
// are, and those that come after it take their places: freeing pages and giving them out again
// would cost more than the rows themselves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "store/sqlite/rows.h"

namespace stint::store {

// By key, sorted; a row of version 0 was removed.
using Recent = std::map<std::string, Row, std::less<>>;

// How far the file has come: which rows are in the table, and the last one in the journal.
struct Position {
  std::uint64_t folded = 0;
  std::uint64_t folded_mark = 0;  // random, of that fold
  std::uint64_t top = 0;          // equal to `folded`: the journal is empty
  std::uint64_t top_mark = 0;     // random, of that row
  std::uint64_t bytes = 0;        // of the rows in the journal
  bool operator==(const Position&) const = default;
};

// What the file holds beyond its table.
struct Journal {
  Position at;
  Mark mark;
  Recent recent;
};

// One transaction's changes, as a journal row keeps them.
struct JournalRow {
  std::uint64_t mark = 0;
  Mark now;
  Recent changes;
};
std::string encode_journal_row(std::uint64_t mark, const Mark& now, const Recent& changes);
// Damaged bytes: Code::Unavailable.
Result<JournalRow> decode_journal_row(std::string_view bytes);

// The journal as the transaction on `db` sees it. `known` (may be null): what was read before; only
// what came since is read, and `more` says that it does: put its rows over the known ones.
struct JournalNews {
  Journal journal;
  bool more = false;
};
Result<JournalNews> read_journal(Database& db, const Journal* known);

// Under the write lock.
Status append_row(Database& db, const Position& at, std::string_view row);
// Writes what has gathered into the table, with the transaction's own changes over it; the journal
// is empty then. `at.folded` and `at.folded_mark` are the new ones.
struct Gathered {
  const Recent& before;
  const Recent& changes;
};
Status fold(Database& db, const Gathered& all, const Mark& mark, const Position& at);

}  // namespace stint::store
