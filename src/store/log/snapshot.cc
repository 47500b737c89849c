#include "store/log/snapshot.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "os/block_file.h"
#include "store/log/segment.h"

namespace stint::store::log {
namespace {

constexpr const char* kSnapshot = "snapshot";
constexpr const char* kStaged = "snapshot.new";
constexpr std::uint64_t kSnapshotFormat = 1;
// What gathers before it is brought to the disk: a later sync of the log does not wait for much.
constexpr std::uint64_t kUnsynced = std::uint64_t{4} << 20U;
// About: what a head says of their number is not believed beyond what the file can hold.
constexpr std::uint64_t kFewestRowBytes = 16;
constexpr std::size_t kWindow = std::size_t{4} << 20U;
constexpr std::size_t kLongestEntry = kMostBody + kWindow;

void pack_time(std::string& out, Nanos time) {
  pack_number(out, static_cast<std::uint64_t>(time.count()));
}
Nanos take_time(RowReader& reader) { return Nanos(static_cast<std::int64_t>(reader.number())); }

std::string packed_head(const SnapshotHead& head) {
  std::string out;
  pack_number(out, kSnapshotFormat);
  for (const std::uint64_t number : {head.from.segment, head.from.offset, head.from.number,
                                     head.from.check, head.mark.seq, head.rows}) {
    pack_number(out, number);
  }
  pack_time(out, head.mark.last);
  pack_boots(out, head.boots);
  return out;
}

// The file, entry by entry, without having all of it in memory.
class SnapshotReader {
 public:
  SnapshotReader(int fd, std::uint64_t size) : fd_(fd), size_(size) {}

  // Valid until the next call. Nothing: no entry follows from the one before.
  std::optional<LogEntry> next(int& error) {
    auto entry = entry_at(here(), 0);
    // However long the entry is; but no further than any entry can be.
    while (!entry && read_ < size_ && here().size() < kLongestEntry) {
      if ((error = read_more()) != 0) return std::nullopt;
      entry = entry_at(here(), 0);
    }
    if (!entry || !follows(*entry, last_)) return std::nullopt;
    at_ += entry->size;
    last_ = {.segment = 0, .offset = 0, .number = entry->number, .check = entry->check};
    return entry;
  }
  bool at_end() const { return read_ == size_ && at_ == end_; }

 private:
  std::string_view here() const { return std::string_view(window_).substr(at_, end_ - at_); }

  // What is left goes to the front; what follows is read behind it, into memory that was used
  // before.
  int read_more() {
    std::memmove(window_.data(), window_.data() + at_, end_ - at_);
    end_ -= at_;
    at_ = 0;
    const std::size_t more = std::min<std::uint64_t>(kWindow, size_ - read_);
    if (window_.size() < end_ + more) window_.resize(end_ + more);
    const int e = os::read_into(fd_, read_, {window_.data() + end_, more});
    if (e != 0) return e;
    read_ += more;
    end_ += more;
    // The disk works while these are taken.
    if (read_ < size_) os::will_read(fd_, read_, kWindow);
    return 0;
  }

  const int fd_;
  const std::uint64_t size_;
  std::uint64_t read_ = 0;
  std::string window_;
  std::size_t at_ = 0;   // in the window: what is not taken yet
  std::size_t end_ = 0;  // and where it ends
  Place last_;
};

}  // namespace

void pack_boots(std::string& out, const std::vector<BootRow>& boots) {
  pack_number(out, boots.size());
  for (const BootRow& row : boots) {
    pack_text(out, row.name.boot_id);
    pack_text(out, row.name.time_namespace);
    pack_text(out, row.name.machine_id);
    pack_time(out, row.boot.first_open);
    pack_time(out, row.boot.last_commit);
    pack_number(out, (row.copied ? 1U : 0U) | (row.prolonged ? 2U : 0U));
  }
}

std::vector<BootRow> take_boots(RowReader& reader) {
  std::vector<BootRow> out;
  for (std::uint64_t left = reader.number(); reader.ok() && left > 0; --left) {
    BootRow row;
    row.name.boot_id = reader.text();
    row.name.time_namespace = reader.text();
    row.name.machine_id = reader.text();
    row.boot.first_open = take_time(reader);
    row.boot.last_commit = take_time(reader);
    const std::uint64_t flags = reader.number();
    row.copied = (flags & 1U) != 0;
    row.prolonged = (flags & 2U) != 0;
    out.push_back(std::move(row));
  }
  return out;
}

std::string_view take_entry(const LogEntry& entry, Snapshot& out, TableBuilder& rows) {
  RowReader reader(entry.body.substr(1));
  switch (static_cast<EntryKind>(entry.body.front())) {
    case EntryKind::Head: {
      if (entry.number != 1 || reader.number() != kSnapshotFormat) return "of another format";
      Place& from = out.head.from;
      for (std::uint64_t* number : {&from.segment, &from.offset, &from.number, &from.check,
                                    &out.head.mark.seq, &out.head.rows}) {
        *number = reader.number();
      }
      out.head.mark.last = take_time(reader);
      out.head.boots = take_boots(reader);
      rows.expect(std::min(out.head.rows, out.bytes / kFewestRowBytes));
      break;
    }
    case EntryKind::Rows:
      while (reader.ok() && !reader.done()) {
        const std::string_view key = reader.text();
        Row row = take_row(reader);
        if (reader.ok() && !rows.add(key, std::move(row))) return "not in order";
      }
      break;
    case EntryKind::End: out.end = reader.number(); break;
    case EntryKind::Commit:
    case EntryKind::Boots: return "with an entry of the log in it";
  }
  return reader.ok() && reader.done() ? std::string_view() : "with a block that cannot be read";
}

SnapshotWriter::~SnapshotWriter() {
  if (staged_) remove_unfinished_snapshot(root_);
}

void remove_unfinished_snapshot(const os::Directory& root) { root.remove(kStaged); }

Status SnapshotWriter::begin(const SnapshotHead& head) {
  if (const int e = root_.remove(kStaged); e != 0 && e != ENOENT) {
    return store_file_error("writing a snapshot of", path_, e);
  }
  if (const int e = root_.create(kStaged, 0600, file_)) {
    return store_file_error("writing a snapshot of", path_, e);
  }
  staged_ = true;
  return write(EntryKind::Head, packed_head(head));
}

Status SnapshotWriter::flush() {
  if (rows_.empty()) return {};
  auto done = write(EntryKind::Rows, rows_);
  rows_.clear();
  return done;
}

Status SnapshotWriter::write(EntryKind kind, std::string_view packed) {
  std::string body(1, static_cast<char>(kind));
  body += packed;
  LogEntry entry;
  entry.number = last_.number + 1;
  entry.before = last_.check;
  entry.body = body;
  std::string bytes;
  last_ = {.segment = 0, .offset = 0, .number = entry.number, .check = append_entry(bytes, entry)};
  int e = os::write_at(file_.get(), written_, bytes);
  written_ += bytes.size();
  if (e == 0 && written_ - synced_ > kUnsynced) {
    e = os::sync_data(file_.get());
    synced_ = written_;
  }
  return e == 0 ? Status() : Status(store_file_error("writing a snapshot of", path_, e));
}

Status SnapshotWriter::finish(std::uint64_t end) {
  std::string packed;
  pack_number(packed, end);
  if (auto done = write(EntryKind::End, packed); !done) return done;
  int e = os::sync_file(file_.get());
  if (e == 0) e = root_.rename(kStaged, kSnapshot);
  if (e == 0) staged_ = false;
  if (e == 0) e = root_.sync();
  return e == 0 ? Status() : Status(store_file_error("writing a snapshot of", path_, e));
}

bool has_snapshot(const os::Directory& root) {
  os::FileFacts facts;
  return root.facts(kSnapshot, facts) != ENOENT;
}

Result<Snapshot> read_snapshot(const os::Directory& root, const std::string& path, Table& table) {
  os::Fd file;
  os::FileFacts facts;
  int e = root.open_existing(kSnapshot, file);
  if (e == 0) e = os::facts_of(file.get(), facts);
  if (e != 0) return store_file_error("reading", path, e);
  Snapshot out;
  out.bytes = facts.size;
  SnapshotReader reader(file.get(), facts.size);
  TableBuilder rows;
  while (const auto entry = reader.next(e)) {
    const std::string_view wrong = take_entry(*entry, out, rows);
    if (!wrong.empty()) return damaged_error(path, cat("its snapshot is ", wrong));
    if (static_cast<EntryKind>(entry->body.front()) != EntryKind::End) continue;
    if (!reader.at_end()) return damaged_error(path, "its snapshot has more behind its end");
    table = std::move(rows).finish();
    return out;
  }
  if (e != 0) return store_file_error("reading", path, e);
  return damaged_error(path, "its snapshot has a checksum that does not fit, or is cut off");
}

}  // namespace stint::store::log
