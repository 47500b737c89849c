#include "store/log/recovery.h"

#include <algorithm>
#include <deque>

#include "base/text.h"

namespace stint::store::log {
namespace {

class Replay {
 public:
  Replay(const os::Directory& root, const std::string& path, std::string_view boot_id,
         Recovered& out)
      : root_(root), path_(path), boot_id_(boot_id), out_(out) {}

  Status run(const Snapshot& snapshot) {
    auto all = list_segments(root_, path_);
    if (!all) return all.error();
    out_.end = snapshot.head.from;
    if (auto opened = open(out_.end.segment); !opened) return opened;
    known_ = out_.end.offset;
    while (true) {
      if (auto done = entries(); !done) return done;
      auto goes_on = enter_next(*all);
      if (!goes_on) return goes_on.error();
      if (!*goes_on) break;
    }
    if (auto sound = look_behind(*all); !sound) return sound;
    if (out_.end.number < snapshot.end) {
      return damaged_error(path_, cat("its log ends at entry ", out_.end.number,
                                      ", and its snapshot knows ", snapshot.end));
    }
    out_.unsynced = bytes_.substr(known_, out_.end.offset - known_);
    for (const std::uint64_t number : *all) {
      if (number < snapshot.head.from.segment) out_.older.push_back(number);
      if (number > out_.end.segment) out_.further.push_back(number);
    }
    return {};
  }

 private:
  Status open(std::uint64_t number) {
    auto segment = open_segment(root_, path_, number, bytes_);
    if (!segment) return segment.error();
    out_.segment = std::move(*segment);
    return {};
  }

  // Those of this segment that follow one from another.
  Status entries() {
    while (true) {
      const auto entry = entry_at(bytes_, out_.end.offset);
      if (!entry || !follows(*entry, out_.end)) return {};
      if (!apply(*entry)) {
        return damaged_error(path_, cat("entry ", entry->number, " of its log cannot be read"));
      }
      out_.end.number = entry->number;
      out_.end.check = entry->check;
      out_.end.offset += entry->size;
      out_.log_bytes += entry->size;
      out_.mark = entry->mark;
      session_ = entry->session;
      ends_.emplace_back(entry->number, out_.end.offset);
      while (!ends_.empty() && ends_.front().first <= entry->synced) {
        known_ = ends_.front().second;
        ends_.pop_front();
      }
    }
  }

  bool apply(const LogEntry& entry) {
    RowReader reader(entry.body.substr(1));
    switch (static_cast<EntryKind>(entry.body.front())) {
      case EntryKind::Commit:
        while (reader.ok() && !reader.done()) {
          const std::string_view key = reader.text();
          out_.table.put(key, take_row(reader));
        }
        break;
      case EntryKind::Boots: out_.boots = take_boots(reader); break;
      case EntryKind::Head:
      case EntryKind::Rows:
      case EntryKind::End: return false;
    }
    return reader.ok() && reader.done();
  }

  // Who goes on in the next segment has synced the one before.
  Result<bool> enter_next(const std::vector<std::uint64_t>& all) {
    const std::uint64_t next = out_.end.segment + 1;
    if (!std::ranges::binary_search(all, next)) return false;
    std::string bytes;
    auto segment = open_segment(root_, path_, next, bytes);
    if (!segment) return segment.error();
    const auto entry = entry_at(bytes, kSegmentHead);
    if (!entry || !follows(*entry, out_.end)) return false;
    // The disk works while the entries of this one are taken.
    if (std::ranges::binary_search(all, next + 1)) expect_segment(root_, next + 1);
    out_.segment = std::move(*segment);
    bytes_ = std::move(bytes);
    out_.end.segment = next;
    out_.end.offset = kSegmentHead;
    known_ = kSegmentHead;
    ends_.clear();
    return true;
  }

  // One that knew the missing one to be synced. And while the machine runs on, what a process has
  // written is there in the order in which it was written: a power cut alone can keep the later.
  bool betrays(const LogEntry& entry) const {
    const bool same_boot = !boot_id_.empty() && !out_.boots.empty() && out_.boots.back().name.boot_id == boot_id_;
    return entry.synced > out_.end.number ||
           (same_boot && entry.session == session_ && entry.number > out_.end.number);
  }

  // Whether what is missing at the end was there once.
  Status look_behind(const std::vector<std::uint64_t>& all) const {
    if (auto sound = look_at(bytes_, out_.end.offset); !sound) return sound;
    for (const std::uint64_t number : all) {
      if (number <= out_.end.segment) continue;
      std::string bytes;
      auto segment = open_segment(root_, path_, number, bytes);
      if (!segment) return segment.error();
      if (auto sound = look_at(bytes, kSegmentHead); !sound) return sound;
    }
    return {};
  }

  Status look_at(std::string_view bytes, std::size_t offset) const {
    for (; offset + entry_size(1) <= bytes.size(); offset += kEntryStep) {
      const auto entry = entry_at(bytes, offset);
      if (!entry || !betrays(*entry)) continue;
      return damaged_error(path_, cat("entry ", out_.end.number + 1,
                                      " of its log does not fit its checksum or is missing, and "
                                      "entry ",
                                      entry->number,
                                      " stands behind it. A disk that failed to write looks the "
                                      "same"));
    }
    return {};
  }

  const os::Directory& root_;
  const std::string& path_;
  const std::string_view boot_id_;
  Recovered& out_;
  std::string bytes_;                                       // of out_.segment
  std::size_t known_ = 0;                                   // up to there it is known to be synced
  std::deque<std::pair<std::uint64_t, std::size_t>> ends_;  // entries beyond: number, end
  std::uint64_t session_ = 0;                               // of the last entry
};

}  // namespace

Result<Recovered> recover(const os::Directory& root, const std::string& path,
                          std::string_view boot_id) {
  Recovered out;
  auto snapshot = read_snapshot(root, path, out.table);
  if (!snapshot) return snapshot.error();
  out.boots = snapshot->head.boots;
  out.mark = snapshot->head.mark;
  out.from = snapshot->head.from;
  out.snapshot_bytes = snapshot->bytes;
  if (auto done = Replay(root, path, boot_id, out).run(*snapshot); !done) return done.error();
  return out;
}

Result<bool> any_entry(const os::Directory& root, const std::string& path) {
  auto all = list_segments(root, path);
  if (!all) return all.error();
  for (const std::uint64_t number : *all) {
    std::string bytes;
    auto segment = open_segment(root, path, number, bytes);
    if (!segment) return segment.error();
    for (std::size_t at = kSegmentHead; at + entry_size(1) <= bytes.size(); at += kEntryStep) {
      if (entry_at(bytes, at)) return true;
    }
  }
  return false;
}

}  // namespace stint::store::log
