#include "store/dir/table.h"

#include <algorithm>

#include "base/text.h"

namespace stint::store::dir {

struct Block {
  struct Entry {
    std::string_view key;
    std::string_view payload;
  };
  std::string bytes;
  std::vector<Entry> entries;
};

namespace {

constexpr std::string_view kTableMagic = "stinttab";
constexpr std::size_t kFooter = 8 + 4 * 8;  // magic, root offset, root length, levels, checksum
constexpr std::size_t kBlockBytes = 4096;
constexpr std::size_t kMostBlockBytes = 1U << 20U;
constexpr std::size_t kCachedBlocks = 256;
constexpr std::size_t kWriteBytes = 1U << 20U;
constexpr std::uint64_t kMostLevels = 16;

// The first entry that is greater than `key`.
std::size_t above(const Block& block, std::string_view key) {
  const auto at = std::ranges::upper_bound(block.entries, key, {}, &Block::Entry::key);
  return static_cast<std::size_t>(at - block.entries.begin());
}

std::size_t not_below(const Block& block, std::string_view key) {
  const auto at = std::ranges::lower_bound(block.entries, key, {}, &Block::Entry::key);
  return static_cast<std::size_t>(at - block.entries.begin());
}

struct BlockPlace {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

BlockPlace child(const Block::Entry& entry) {
  Unpacker in(entry.payload);
  BlockPlace out;
  out.offset = in.number();
  out.length = in.number();
  return out;
}

}  // namespace

Error Table::damaged(std::string_view what) const {
  return unavailable(cat("the table ", quoted(name_), " is damaged: ", what));
}

Result<std::shared_ptr<const Table>> Table::open(const os::Directory& directory,
                                                 const std::string& name) {
  std::shared_ptr<Table> table(new Table());
  table->name_ = name;
  const auto failed = [&](int number) {
    return os::file_error(cat("reading the table ", quoted(name)), number);
  };
  if (const int e = directory.open_existing(name, table->file_)) return failed(e);
  os::FileFacts facts;
  if (const int e = os::facts_of(table->file_.get(), facts)) return failed(e);
  table->bytes_ = facts.size;
  if (facts.size < kFooter) return table->damaged("it is too short");
  std::string footer;
  if (const int e = os::read_at(table->file_.get(), facts.size - kFooter, kFooter, footer)) {
    return failed(e);
  }
  Unpacker in(footer);
  if (!in.unseal() || in.raw(kTableMagic.size()) != kTableMagic) return table->damaged("its end");
  const std::uint64_t offset = in.number();
  const std::uint64_t length = in.number();
  table->levels_ = in.number();
  if (table->levels_ > kMostLevels) return table->damaged("its depth");
  if (length != 0) {
    auto root = table->block(offset, length);
    if (!root) return root.error();
    table->root_ = *root;
  }
  return std::shared_ptr<const Table>(std::move(table));
}

Result<BlockPointer> Table::block(std::uint64_t offset, std::uint64_t length) const {
  {
    const MutexLock lock(mutex_);
    const auto found = cache_.find(offset);
    if (found != cache_.end()) return found->second;
  }
  if (length > kMostBlockBytes || offset > bytes_ || length > bytes_ - offset) {
    return damaged("a block out of bounds");
  }
  auto block = std::make_shared<Block>();
  if (const int e = os::read_at(file_.get(), offset, length, block->bytes)) {
    return os::file_error(cat("reading the table ", quoted(name_)), e);
  }
  Unpacker in(block->bytes);
  if (!in.unseal()) return damaged("a checksum");
  while (!in.done()) {
    const std::string_view key = in.text();
    const std::string_view payload = in.text();
    if (!in.ok()) return damaged("a block");
    block->entries.push_back({key, payload});
  }
  if (block->entries.empty()) return damaged("an empty block");
  const MutexLock lock(mutex_);
  if (cache_.size() >= kCachedBlocks) cache_.clear();
  cache_.emplace(offset, block);
  return BlockPointer(std::move(block));
}

Result<std::optional<Slot>> Table::look(std::string_view key) const {
  BlockPointer at = root_;
  if (!at) return std::optional<Slot>();
  for (std::uint64_t level = levels_; level > 0; --level) {
    const std::size_t index = above(*at, key);
    if (index == 0) return std::optional<Slot>();
    const BlockPlace place = child(at->entries[index - 1]);
    auto next = block(place.offset, place.length);
    if (!next) return next.error();
    at = *next;
  }
  const std::size_t index = not_below(*at, key);
  if (index == at->entries.size() || at->entries[index].key != key) return std::optional<Slot>();
  Unpacker in(at->entries[index].payload);
  Slot slot = unpack_slot(in);
  if (!in.done()) return damaged("a record");
  return std::optional<Slot>(std::move(slot));
}

std::string_view Cursor::key() const { return path_.back().block->entries[path_.back().index].key; }

Result<Slot> Cursor::slot() const {
  Unpacker in(path_.back().block->entries[path_.back().index].payload);
  Slot slot = unpack_slot(in);
  if (!in.done()) return table_->damaged("a record");
  return slot;
}

// From the block at the end of the path down to a record, always to the first or to the last.
Status Cursor::descend(bool to_last) {
  while (path_.size() <= table_->levels_) {
    const BlockPlace place = child(path_.back().block->entries[path_.back().index]);
    auto next = table_->block(place.offset, place.length);
    if (!next) return next.error();
    path_.push_back({*next, to_last ? (*next)->entries.size() - 1 : 0});
  }
  return {};
}

Status Cursor::seek(std::string_view key, bool backwards) {
  path_.clear();
  if (!table_->root_) return {};
  path_.push_back({table_->root_, 0});
  while (path_.size() <= table_->levels_) {
    At& at = path_.back();
    const std::size_t index = above(*at.block, key);
    at.index = index == 0 ? 0 : index - 1;
    const BlockPlace place = child(at.block->entries[at.index]);
    auto next = table_->block(place.offset, place.length);
    if (!next) return next.error();
    path_.push_back({*next, 0});
  }
  At& leaf = path_.back();
  leaf.index = not_below(*leaf.block, key);
  if (backwards) return move(true);  // from the first that is not less to the one before it
  if (leaf.index < leaf.block->entries.size()) return {};
  --leaf.index;
  return move(false);
}

Status Cursor::move(bool backwards) {
  while (!path_.empty()) {
    At& at = path_.back();
    const bool more = backwards ? at.index > 0 : at.index + 1 < at.block->entries.size();
    if (more) {
      at.index += backwards ? -1UL : 1UL;
      return descend(backwards);
    }
    path_.pop_back();
  }
  return {};
}

void TableWriter::put(Building& block, std::string_view key, std::string_view payload) {
  if (block.entries++ == 0) block.first_key = key;
  block.bytes.text(key).text(payload);
}

int TableWriter::close_block(Building& block, std::vector<Child>& parents) {
  if (block.entries == 0) return 0;
  const std::string sealed = std::move(block.bytes).sealed();
  parents.push_back({block.first_key, written_, sealed.size()});
  block = {};
  return write(sealed);
}

int TableWriter::write(std::string_view bytes) {
  pending_ += bytes;
  written_ += bytes.size();
  return pending_.size() < kWriteBytes ? 0 : flush();
}

int TableWriter::flush() {
  const int failed = os::write_whole(file_.get(), pending_);
  pending_.clear();
  return failed;
}

int TableWriter::add(std::string_view key, const Slot& slot) {
  Packer payload;
  pack(payload, slot);
  put(leaf_, key, payload.bytes());
  return leaf_.bytes.size() < kBlockBytes ? 0 : close_block(leaf_, leaves_);
}

int TableWriter::finish() {
  if (const int e = close_block(leaf_, leaves_)) return e;
  std::vector<Child> level = std::move(leaves_);
  std::uint64_t levels = 0;
  while (level.size() > 1) {
    std::vector<Child> above_it;
    Building block;
    for (const Child& one : level) {
      Packer payload;
      payload.number(one.offset).number(one.length);
      put(block, one.first_key, payload.bytes());
      if (block.bytes.size() < kBlockBytes) continue;
      if (const int e = close_block(block, above_it)) return e;
    }
    if (const int e = close_block(block, above_it)) return e;
    level = std::move(above_it);
    ++levels;
  }
  Packer footer;
  footer.raw(kTableMagic).number(level.empty() ? 0 : level.front().offset);
  footer.number(level.empty() ? 0 : level.front().length).number(levels);
  if (const int e = write(std::move(footer).sealed())) return e;
  if (const int e = flush()) return e;
  return os::sync_file(file_.get());
}

}  // namespace stint::store::dir
