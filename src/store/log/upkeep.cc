// The background of a log: store: room ahead of the log's end, and snapshots. Commits go on
// meanwhile; a snapshot holds the records' lock for a few of them at a time.
#include "base/text.h"
#include "os/thread.h"
#include "store/file_rights.h"
#include "store/log/log_store.h"
#include "store/log/opening.h"
#include "store/log/snapshot.h"

namespace stint::store {
namespace {

constexpr std::size_t kRowsAtATime = 256;
constexpr std::size_t kBytesInABlock = std::size_t{1} << 20U;
// A block may have one walk's rows more, and must stay what an entry can hold.
static_assert(kBytesInABlock + kRowsAtATime * (Store::kMaxKeyBytes + Store::kMaxValueBytes + 64) <
              log::kMostBody);
// A process that is about to go does without: it makes what it needs itself.
constexpr unsigned kBatchesOfAStayer = 50;
constexpr Millis kAfterTrouble{1000};
// A log that has grown to this many times what calls for a snapshot is not left so at the end.
constexpr std::uint64_t kTooLong = 4;

}  // namespace

LogStore::~LogStore() {
  bool overdue = false;
  std::thread house;
  {
    const MutexLock lock(house_mutex_);
    closing_ = true;
    house.swap(house_);
    const std::uint64_t grown = writer_.written() - log_bytes_;
    overdue = grown > kTooLong * (options_.snapshot_after + snapshot_bytes_ / 2);
  }
  abandon_ = true;
  house_call_.notify_all();
  if (house.joinable()) house.join();
  abandon_ = false;
  // Many short openings: none of them stays long enough for the background.
  if (overdue && usable()) (void)take_snapshot();
}

bool LogStore::snapshot_due() const {
  const MutexLock lock(house_mutex_);
  return writer_.written() - log_bytes_ > options_.snapshot_after + snapshot_bytes_ / 2;
}

void LogStore::look_after() {
  if (++batches_ <= kBatchesOfAStayer || writer_.spoilt()) return;
  if (!writer_.wants_segment() && !snapshot_due()) return;
  {
    const MutexLock lock(house_mutex_);
    if (closing_ || called_ || clock_.mono() < not_before_) return;
    called_ = true;
    if (!house_.joinable()) start_house();
  }
  house_call_.notify_all();
}

// Without it commits go on: they make what they need themselves. Tried again after a while.
void LogStore::start_house() {
  if (auto started =
          os::start_thread("stint-log", "look after the log", [this] { keep_house(); })) {
    house_ = std::move(*started);
  } else {
    called_ = false;
    trouble_ = started.error().message;
    not_before_ = clock_.mono() + kAfterTrouble;
  }
}

void LogStore::keep_house() {
  while (true) {
    {
      MutexLock lock(house_mutex_);
      while (!called_ && !closing_) house_call_.wait(lock);
      if (closing_) return;
    }
    Status done = writer_.prepare();
    // Where there is no room for the log, a snapshot gives some back.
    if (snapshot_due()) {
      done = take_snapshot();
      if (done) done = writer_.prepare();
    }
    const MutexLock lock(house_mutex_);
    called_ = false;
    trouble_ = done ? "" : done.error().message;
    // A full disk is not asked again at every commit; nor left alone until commits go on.
    if (!done) not_before_ = clock_.mono() + kAfterTrouble;
  }
}

Status LogStore::take_snapshot() {
  log::SnapshotHead head;
  std::uint64_t written = 0;
  {
    const MutexLock lock(mutex_);
    head.boots = boot_rows_;
    head.mark = mark_;
    head.from = applied_;
    head.rows = table_.size();
    written = writer_.written();
  }
  log::SnapshotWriter writer(ground_->root, options_.path);
  if (auto begun = writer.begin(head); !begun) return begun;
  auto end = write_rows(writer);
  if (!end) return end.error();
  if (auto synced = writer_.sync(); !synced) return synced;
  // Nothing is replaced or freed in a directory that may be another's by now.
  if (auto ok = usable(); !ok) return ok;
  if (auto done = writer.finish(*end); !done) return done;
  if (auto ok = usable(); !ok) return ok;
  std::vector<std::uint64_t> needless;
  {
    const MutexLock lock(house_mutex_);
    for (std::uint64_t n = snapshot_from_.segment; n < head.from.segment; ++n)
      needless.push_back(n);
    snapshot_from_ = head.from;
    snapshot_bytes_ = writer.bytes();
    log_bytes_ = written;
  }
  writer_.give_back(needless);
  return {};
}

// Returns the last entry that any of the rows may show.
Result<std::uint64_t> LogStore::write_rows(log::SnapshotWriter& writer) {
  std::string last;
  std::uint64_t end = 0;
  for (bool more = true; more;) {
    if (abandon_) return unavailable("the store is being closed");
    {
      const MutexLock lock(mutex_);
      more = table_.walk(last, kRowsAtATime, [&](std::string_view key, const Row& row) {
        writer.add(key, row);
        last = key;
      });
      end = applied_.number;
    }
    if (more && writer.waiting() < kBytesInABlock) continue;
    if (auto done = writer.flush(); !done) return done.error();
    // Commits that go on meanwhile would wait for the next segment. One that cannot be made is told
    // to who needs it; the snapshot may give room back.
    if (batches_ > kBatchesOfAStayer) (void)writer_.prepare();
  }
  return end;
}

std::string LogStore::trouble() const {
  if (auto ok = usable(); !ok) return ok.error().message;
  const MutexLock lock(house_mutex_);
  if (trouble_.empty()) return {};
  return cat("a snapshot, or room for the log, was not made; commits go on while there is room: ",
             trouble_);
}

Result<std::vector<Finding>> LogStore::examine() {
  if (auto ok = usable(); !ok) return ok.error();
  std::vector<Finding> out = {file_rights({.own = {options_.path}})};
  if (const std::string text = trouble(); !text.empty()) {
    out.push_back({Finding::Level::Warn, "snapshot", text});
  }
  return out;
}

}  // namespace stint::store
