// The end of the log: entries are written there, and synced when somebody was promised that.
//
// After a write or a sync that failed nobody knows what the disk has: nothing is written any more
// until the store has been read anew. A sync is never tried twice.   G11
//
// Thread-safe.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "os/directory.h"
#include "store/log/entry.h"
#include "store/log/segment.h"

namespace stint::store::log {

struct Draft {
  Mark mark;
  std::string body;
};

class LogWriter {
 public:
  // The store's directory, already locked; both must outlive it.
  LogWriter(const os::Directory& root, const std::string& path, std::uint64_t segment_size,
            std::uint64_t session)
      : root_(root), path_(path), segment_size_(segment_size), session_(session) {}

  // Goes on at `end` of `segment`. `unsynced`: the bytes before it that may be nowhere but in the
  // cache; they are written again, and synced.
  Status start(const Place& end, Segment&& segment, std::string_view unsynced);

  // All of them, in one piece. An error with `touched`: they may be there or not, and the writer is
  // spoilt; without: nothing was written. REQUIRES: they fit into one segment.
  Status write(const std::vector<Draft>& drafts, bool sync, bool& touched);
  // All that was written so far.
  Status sync();

  bool spoilt() const { return spoilt_; }
  Place end() const;
  std::uint64_t written() const { return written_; }  // bytes, since the start

  // Makes the next segment when this one is half full and there is none yet. For the background:
  // write() does it itself if it must.
  bool wants_segment() const;
  Status prepare();
  // Segments that are not needed any more.
  void give_back(const std::vector<std::uint64_t>& numbers);

 private:
  Status need_next() EXCLUDES(mutex_);
  Status write_locked(const std::vector<Draft>& drafts, bool sync, bool& touched) REQUIRES(mutex_);
  Error spoil(int number) REQUIRES(mutex_);

  const os::Directory& root_;
  const std::string& path_;
  const std::uint64_t segment_size_;
  const std::uint64_t session_;
  std::atomic<bool> spoilt_ = false;
  std::atomic<std::uint64_t> written_ = 0;

  Mutex making_;  // held while a segment is made; taken before mutex_
  std::vector<std::uint64_t> free_ GUARDED_BY(making_);

  // Held over writes and syncs, so that they are one after another: what is behind a failed one is
  // never written. Readers of the records do not need it.
  mutable Mutex mutex_;
  Segment segment_ GUARDED_BY(mutex_);
  std::optional<Segment> next_ GUARDED_BY(mutex_);
  Place end_ GUARDED_BY(mutex_);
  std::uint64_t synced_ GUARDED_BY(mutex_) = 0;
};

}  // namespace stint::store::log
