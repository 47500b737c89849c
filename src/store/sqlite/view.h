// What the file holds, as far as this process knows: the journal's rows, and rows of the table.
//
// SQLite keeps the header of its log's index in memory that all processes share; it changes with
// every commit (sqlite.org/walformat.html, "The WAL-Index File Format"). A stamp is a copy of it:
// while the present one is that of the view, looking at it costs no statement, no lock of the file
// and no system call. When others have committed, only their journal rows are read; rows of the
// table stay good until somebody folds. Safety does not rest on a reader's look: a commit compares
// under the write lock.
//
// Thread-safe. The view never is ahead of the file: it takes over a commit after it was made, and
// whoever refreshes it begins its transaction's first read while holding the mutex.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "store/sqlite/journal.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/scan.h"

namespace stint::store {

struct Stamp {
  std::array<std::uint32_t, 12> words{};
  bool operator==(const Stamp&) const = default;
  // Whether exactly one commit lies between them.
  bool follows(const Stamp& before) const;
};

class View {
 public:
  // By key; a row of version 0 is absent.
  using Rows = std::unordered_map<std::string, Row>;

  // `index` is SQLite's shared memory (Database::log_index()), null: every look goes to the file.
  // It must stay until detach().
  void attach(const volatile std::uint32_t* index);
  void detach();
  bool attached() const;

  // All of them as the file is now, without looking at it; or nothing.
  std::optional<std::vector<Row>> find(const std::vector<std::string>& keys) const;
  // The same for a scan.
  std::optional<FoundRows> find(const Store::ScanRange& range) const;

  // The others REQUIRE that a transaction was begun on `db`, and they bring the view up to it.

  // Known rows; those that are not are to be read from the table, in the same transaction.
  struct Known {
    std::vector<std::optional<Row>> rows;
    Position at;
  };
  Result<Known> look(Database& db, const std::vector<std::string>& keys);
  // The journal's part of a scan.
  struct RecentRows {
    FoundRows rows;
    Position at;
  };
  Result<RecentRows> look(Database& db, const Store::ScanRange& range);
  // Rows that were read from the table at that position.
  void add(const Position& at, const Rows& rows);
  // All that the table has in that range.
  void add(const Position& at, const Store::ScanRange& range, FoundRows&& rows);

  // The last number appended under the prefix, as far as the view has come; empty: not known.
  std::optional<std::uint64_t> newest_known(const std::string& prefix) const;

  // For the writer, under the file's write lock: what it writes upon.
  struct Base {
    Position at;
    Mark mark;
    std::size_t removed = 0;  // rows of the table that the journal says are gone
    std::optional<Stamp> stamp;
  };
  Result<Base> base(Database& db);
  // Without its value, unless that is asked for: most steps only compare version and timer.
  enum class Part { Head, Whole };
  std::optional<Row> known(const std::string& key, Part part) const;
  // The last number appended under the prefix.
  Result<std::uint64_t> newest(Database& db, const std::string& prefix);
  // All that the journal holds.
  Recent recent() const;

  // A commit of one's own upon `base` was made. `folded`: it has brought the table up to date.
  struct Done {
    Position at;
    Mark mark;
    Recent changes;
    bool folded = false;
  };
  void advance(const Base& base, Done&& done);

 private:
  std::optional<Stamp> read_stamp() const REQUIRES(mutex_);
  enum class Transaction { Reads, Writes };
  Status refresh(Database& db, Transaction kind) REQUIRES(mutex_);
  const Row* find_locked(const std::string& key) const REQUIRES(mutex_);
  void put(const std::string& key, const Row& row) REQUIRES(mutex_);
  void put_over(Recent&& changes) REQUIRES(mutex_);
  void note(const std::string& key, const Row& row) REQUIRES(mutex_);
  void clear_journal() REQUIRES(mutex_);
  bool of_this_table(const Position& at) const REQUIRES(mutex_);
  void note_appended(const std::string& key) REQUIRES(mutex_);

  mutable Mutex mutex_;
  const volatile std::uint32_t* index_ GUARDED_BY(mutex_) = nullptr;
  // Of the state that the view shows; empty: it must be compared with the file.
  std::optional<Stamp> stamp_ GUARDED_BY(mutex_);
  bool known_ GUARDED_BY(mutex_) = false;  // the journal was read at least once
  Journal journal_ GUARDED_BY(mutex_);
  std::size_t removed_ GUARDED_BY(mutex_) = 0;  // of its rows
  // What was asked for, as table and journal together have it: a look is one step, and a fold
  // changes nothing here. What is only ever written (the ledger) is not among it.
  Rows asked_ GUARDED_BY(mutex_);
  // By prefix: all that the table has there, where that is little. Good until a fold.
  std::unordered_map<std::string, FoundRows> ranges_ GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t, std::less<>> newest_ GUARDED_BY(mutex_);
};

}  // namespace stint::store
