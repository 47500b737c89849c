// An immutable file of records in key order, of which a look-up reads a few blocks.
//
// Blocks of about 4 KiB; above them blocks of (first key of a block, where it is), and so on up to
// one root: opening and looking up cost the same with ten records and with a hundred thousand. Each
// block carries a checksum.
//
// Thread safety: any thread.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "os/directory.h"
#include "store/dir/record.h"

namespace stint::store::dir {

struct Block;
using BlockPointer = std::shared_ptr<const Block>;  // shared: the cache and cursors hold it

class Table {
 public:
  static Result<std::shared_ptr<const Table>> open(const os::Directory& directory,
                                                   const std::string& name);

  const std::string& name() const { return name_; }
  std::uint64_t bytes() const { return bytes_; }

  // Outer empty: the table says nothing about the key.
  Result<std::optional<Slot>> look(std::string_view key) const;

 private:
  friend class Cursor;
  Table() = default;
  Result<BlockPointer> block(std::uint64_t offset, std::uint64_t length) const;
  Error damaged(std::string_view what) const;

  std::string name_;
  os::Fd file_;
  std::uint64_t bytes_ = 0;
  std::uint64_t levels_ = 0;  // of blocks above the records; the root is the highest
  BlockPointer root_;         // empty: there is no record

  mutable Mutex mutex_;
  mutable std::unordered_map<std::uint64_t, BlockPointer> cache_ GUARDED_BY(mutex_);
};

// A place in a table. Thread safety: one thread.
class Cursor {
 public:
  explicit Cursor(std::shared_ptr<const Table> table) : table_(std::move(table)) {}
  // To the first key that is not less; backwards, to the last that is less.
  Status seek(std::string_view key, bool backwards);
  Status move(bool backwards);
  bool valid() const { return !path_.empty(); }
  std::string_view key() const;
  Result<Slot> slot() const;

 private:
  struct At {
    BlockPointer block;
    std::size_t index = 0;
  };
  Status descend(bool to_last);
  std::shared_ptr<const Table> table_;
  std::vector<At> path_;  // from the root to the record; empty: beyond the end
};

// Writes a table. Keys must come in order.
class TableWriter {
 public:
  explicit TableWriter(os::Fd& file) : file_(file) {}
  int add(std::string_view key, const Slot& slot);
  // Writes the index and syncs.
  int finish();

 private:
  struct Child {
    std::string first_key;
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };
  struct Building {
    Packer bytes;
    std::size_t entries = 0;
    std::string first_key;
  };
  void put(Building& block, std::string_view key, std::string_view payload);
  int close_block(Building& block, std::vector<Child>& parents);
  int write(std::string_view bytes);
  int flush();

  os::Fd& file_;
  std::string pending_;
  std::uint64_t written_ = 0;
  Building leaf_;
  std::vector<Child> leaves_;
};

}  // namespace stint::store::dir
