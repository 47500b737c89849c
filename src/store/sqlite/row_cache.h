// The rows that this process has seen, good for as long as nobody has changed the file.
//
// SQLite keeps the header of its log's index in memory that all processes share; it changes with
// every commit (sqlite.org/walformat.html, "The WAL-Index File Format"). A stamp is a copy of it:
// while the present one is that of the cached rows, they are the file's rows, and looking at them
// costs no statement, no lock of the file and no system call. Safety does not rest on a reader's
// look: a commit compares under the write lock.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "store/sqlite/rows.h"

namespace stint::store {

struct Stamp {
  std::array<std::uint32_t, 12> words{};
  bool operator==(const Stamp&) const = default;
  // Whether exactly one commit lies between them.
  bool follows(const Stamp& before) const;
};

// What a transaction changed or found out, by key; a row of version 0 is absent.
using Rows = std::unordered_map<std::string, Row>;

// What only writers use.
struct WriterState {
  std::optional<Mark> mark;
  std::map<std::string, std::uint64_t, std::less<>> newest;  // by prefix: the last appended number
};

class RowCache {
 public:
  // `index` is SQLite's shared memory (Database::log_index()), null: nothing is cached. It must
  // stay until detach().
  void attach(const volatile std::uint32_t* index);
  void detach();
  bool attached() const;

  // Empty while it is being written, and without an index.
  std::optional<Stamp> present() const;

  // All of them, or nothing.
  std::optional<std::vector<Row>> find(const std::vector<std::string>& keys) const;
  std::optional<Row> find(const std::string& key) const;

  // Rows that were read while the stamp was the present one. What is of another stamp goes.
  void add(const Stamp& at, Rows rows);
  // Under the write lock: the state that goes with `at`; empty if the cache is of another one.
  WriterState writer(const Stamp& at);
  // After a commit of one's own that led from one stamp to the next.
  struct Changes {
    Rows rows;
    std::unordered_set<std::string> unseen;  // written without a look: not worth keeping
    WriterState state;
  };
  void advance(const Stamp& from, const Stamp& to, Changes changes);
  void clear();

 private:
  std::optional<Stamp> read_stamp() const REQUIRES(mutex_);
  bool valid() const REQUIRES(mutex_);
  void put(Rows&& rows) REQUIRES(mutex_);

  mutable Mutex mutex_;
  const volatile std::uint32_t* index_ GUARDED_BY(mutex_) = nullptr;
  std::optional<Stamp> stamp_ GUARDED_BY(mutex_);
  Rows rows_ GUARDED_BY(mutex_);
  WriterState writer_ GUARDED_BY(mutex_);
};

}  // namespace stint::store
