#include "store/log/writer.h"

#include <cerrno>

#include "base/text.h"
#include "os/block_file.h"

namespace stint::store::log {
namespace {

// More of them are removed: they are for reuse, not for keeping.
constexpr std::size_t kMostFree = 4;

}  // namespace

Status LogWriter::start(const Place& end, Segment&& segment, std::string_view unsynced) {
  const MutexLock lock(mutex_);
  segment_ = std::move(segment);
  end_ = end;
  synced_ = end.number;
  if (unsynced.empty()) return {};
  // What a failed sync left in the cache looks written; only writing it again brings it to the
  // disk.
  int e = os::write_at(segment_.file.get(), end.offset - unsynced.size(), unsynced);
  if (e == 0) e = os::sync_data(segment_.file.get());
  if (e == 0) return {};
  return spoil(e);
}

Error LogWriter::spoil(int number) {
  spoilt_ = true;
  return store_file_error("writing to", path_, number);
}

Place LogWriter::end() const {
  const MutexLock lock(mutex_);
  return end_;
}

Status LogWriter::write(const std::vector<Draft>& drafts, bool sync, bool& touched) {
  std::size_t size = 0;
  for (const Draft& draft : drafts) size += entry_size(draft.body.size());
  {
    const MutexLock lock(mutex_);
    const bool fits = next_ || end_.offset + size <= segment_.size;
    if (fits) return write_locked(drafts, sync, touched);
  }
  if (auto made = need_next(); !made) return made;
  const MutexLock lock(mutex_);
  return write_locked(drafts, sync, touched);
}

Status LogWriter::write_locked(const std::vector<Draft>& drafts, bool sync, bool& touched) {
  if (spoilt_) return unavailable(cat("the store ", quoted(path_), " has to be opened anew"));
  Place last = end_;
  std::string here;
  std::string there;  // in the next segment
  bool rolls = false;
  std::uint64_t known = synced_;
  for (const Draft& draft : drafts) {
    const std::size_t size = entry_size(draft.body.size());
    if (!rolls && last.offset + size > segment_.size) {
      rolls = true;
      known = last.number;  // `there` is written after a sync of all that is before it
      last.segment += 1;
      last.offset = kSegmentHead;
    }
    LogEntry entry;
    entry.number = ++last.number;
    entry.before = last.check;
    entry.synced = known;
    entry.session = session_;
    entry.mark = draft.mark;
    entry.body = draft.body;
    last.check = append_entry(rolls ? there : here, entry);
    last.offset += size;
  }
  touched = true;
  if (const int e = os::write_at(segment_.file.get(), end_.offset, here)) return spoil(e);
  if (rolls) {
    // Whatever stands in a segment says that the one before it is synced.
    if (const int e = os::sync_data(segment_.file.get())) return spoil(e);
    synced_ = known;
    segment_ = std::move(*next_);
    next_.reset();
    if (const int e = os::write_at(segment_.file.get(), kSegmentHead, there)) return spoil(e);
  }
  end_ = last;
  written_ += here.size() + there.size();
  if (!sync) return {};
  if (const int e = os::sync_data(segment_.file.get())) return spoil(e);
  synced_ = end_.number;
  return {};
}

Status LogWriter::sync() {
  const MutexLock lock(mutex_);
  if (spoilt_) return unavailable(cat("the store ", quoted(path_), " has to be opened anew"));
  if (synced_ == end_.number) return {};
  if (const int e = os::sync_data(segment_.file.get())) return spoil(e);
  synced_ = end_.number;
  return {};
}

bool LogWriter::wants_segment() const {
  const MutexLock lock(mutex_);
  return !next_ && end_.offset * 2 > segment_.size;
}

Status LogWriter::prepare() { return wants_segment() ? need_next() : Status(); }

Status LogWriter::need_next() {
  const MutexLock making(making_);
  std::uint64_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (next_) return {};
    number = segment_.number + 1;
  }
  SegmentPlan plan{.number = number, .size = segment_size_, .old = 0};
  if (!free_.empty()) {
    plan.old = free_.back();
    free_.pop_back();
  }
  auto made = make_segment(root_, path_, plan);
  if (!made) return made.error();
  const MutexLock lock(mutex_);
  next_ = std::move(*made);
  return {};
}

void LogWriter::give_back(const std::vector<std::uint64_t>& numbers) {
  const MutexLock making(making_);
  for (const std::uint64_t number : numbers) {
    if (free_.size() < kMostFree) {
      free_.push_back(number);
    } else {
      root_.remove(segment_name(number));
    }
  }
}

}  // namespace stint::store::log
