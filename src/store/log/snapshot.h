// All records at some moment, in one file: what the log before it is not needed for any more.
//
// It is written in slices while commits go on, so a record in it may be newer than the moment at
// which it began. That does no harm: entries say what a record is afterwards, and replaying all of
// them from `from` on gives every record its last state. It counts only when the log up to where it
// ended is synced, and is given its name after that.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "os/directory.h"
#include "store/arrival.h"
#include "store/log/entry.h"
#include "store/log/table.h"
#include "store/row_bytes.h"

namespace stint::store::log {

struct SnapshotHead {
  std::vector<BootRow> boots;
  Mark mark;
  Place from;              // the log is replayed from here
  std::uint64_t rows = 0;  // about as many follow
};

void pack_boots(std::string& out, const std::vector<BootRow>& boots);
std::vector<BootRow> take_boots(RowReader& reader);

class SnapshotWriter {
 public:
  SnapshotWriter(const os::Directory& root, std::string path)
      : root_(root), path_(std::move(path)) {}
  // What was not finished goes: a full disk needs the space.
  ~SnapshotWriter();
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  Status begin(const SnapshotHead& head);
  // In the order of their keys.
  void add(std::string_view key, const Row& row) { pack_row(rows_, key, row); }
  std::size_t waiting() const { return rows_.size(); }  // bytes that were added and not written
  // Writes what was added, as one entry. REQUIRES: not more than an entry can hold.
  Status flush();
  // The log is synced up to the entry `end`, the last that any row may show: from here on it
  // counts.
  Status finish(std::uint64_t end);
  std::uint64_t bytes() const { return written_; }

 private:
  Status write(EntryKind kind, std::string_view body);
  const os::Directory& root_;
  const std::string path_;
  os::Fd file_;
  bool staged_ = false;
  std::string rows_;
  std::uint64_t written_ = 0;
  std::uint64_t synced_ = 0;
  Place last_;
};

struct Snapshot {
  SnapshotHead head;
  std::uint64_t end = 0;  // the log must go at least that far
  std::uint64_t bytes = 0;
};
// One entry of a snapshot. A word about what is wrong; empty: nothing.
std::string_view take_entry(const LogEntry& entry, Snapshot& out, TableBuilder& rows);
// Code::Unavailable: it cannot be read, or is damaged.
Result<Snapshot> read_snapshot(const os::Directory& root, const std::string& path, Table& table);
bool has_snapshot(const os::Directory& root);
// What somebody who died has left of one.
void remove_unfinished_snapshot(const os::Directory& root);

}  // namespace stint::store::log
