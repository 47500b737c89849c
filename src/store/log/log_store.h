// `log:PATH` - an append-only store for one process at a time, made for `stint serve`.
//
// All records are in memory; what a commit changes is appended to a log whose space was written
// before, so that a sync is one write to the disk. Commits that arrive together share it. A
// snapshot now and then keeps the log short. Time is the boot-time clock, as in a sqlite: store. G4
// G11
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "os/clock.h"
#include "store/arrival.h"
#include "store/combiner.h"
#include "store/log/table.h"
#include "store/log/watches.h"
#include "store/log/writer.h"
#include "store/many.h"
#include "store/seam.h"
#include "store/troubled.h"

namespace stint::store {

namespace log {
class Group;
class SnapshotWriter;
struct Ground;
struct Recovered;
}  // namespace log

struct LogOptions {
  std::string path;
  os::ClockName clock_name;
  Millis busy{1000};  // the longest wait for another process to let go of it
  bool may_create = true;
  bool accept_copy = false;  // an operator says that this copy of a store is to be used
  std::uint64_t segment_size = std::uint64_t{8} << 20U;  // at least kSmallestSegment
  // A snapshot is made when the log has grown by that much, and by half of the last snapshot.
  std::uint64_t snapshot_after = std::uint64_t{32} << 20U;

  static constexpr std::uint64_t kSmallestSegment = std::uint64_t{1} << 20U;
};

class LogStore final : public Store, public ManyCommits, public Troubled {
 public:
  static Result<std::unique_ptr<LogStore>> open(const LogOptions& options, const Clock& clock);
  ~LogStore() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  const Opening& opening() const override { return opening_; }
  Result<Reading> read(const std::vector<std::string>& keys) override;
  Result<Reading> scan(const ScanRange& range) override;
  Result<CommitAnswer> commit(const std::vector<Step>& steps, Sync sync) override;
  std::vector<Result<CommitAnswer>> commit_many(const std::vector<Proposal>& proposals) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override;
  Result<std::uint64_t> appended(const std::string& prefix) override;
  Result<std::uint64_t> revision() override;
  Result<std::vector<Finding>> examine() override;
  Status accept() override;
  std::string trouble() const override;

 private:
  struct Pending;

  LogStore(LogOptions options, const Clock& clock, std::unique_ptr<log::Ground> ground);
  Status start(log::Recovered&& recovered);
  Status write_boots();

  // Whether the store may be asked at all; told in words if not.
  Status usable() const;
  void run_batch(const std::vector<Pending*>& batch);
  std::size_t plan_group(const std::vector<Pending*>& batch, std::size_t first, log::Group& group);
  Status write_group(log::Group& group, bool& unknown);
  void wake(const std::vector<Pending*>& batch);

  // The background: room for the log, and snapshots. Its thread begins when there is something to
  // do, in a process that stays.
  void look_after();
  void start_house() REQUIRES(house_mutex_);
  bool snapshot_due() const;
  void keep_house();
  Status take_snapshot();
  Result<std::uint64_t> write_rows(log::SnapshotWriter& writer);

  // Constant after the opening.
  const LogOptions options_;
  const Clock& clock_;
  const Capabilities capabilities_;
  const std::unique_ptr<log::Ground> ground_;
  Opening opening_;

  log::LogWriter writer_;
  std::shared_ptr<log::Watches> watches_;  // shared with them: a watch may outlive the store

  mutable Mutex mutex_;
  log::Table table_ GUARDED_BY(mutex_);
  std::vector<BootRow> boot_rows_ GUARDED_BY(mutex_);
  Mark mark_ GUARDED_BY(mutex_);
  log::Place applied_ GUARDED_BY(mutex_);  // the table shows the log up to here
  // By prefix: the last number given.
  std::map<std::string, std::uint64_t, std::less<>> newest_ GUARDED_BY(mutex_);
  Boots boots_;  // constant after the opening: what boot_rows_ say of times

  std::atomic<unsigned> batches_ = 0;
  mutable Mutex house_mutex_;
  std::condition_variable_any house_call_;
  std::thread house_ GUARDED_BY(house_mutex_);
  bool called_ GUARDED_BY(house_mutex_) = false;
  bool closing_ GUARDED_BY(house_mutex_) = false;
  std::atomic<bool> abandon_ = false;  // a snapshot that is under way
  log::Place snapshot_from_ GUARDED_BY(house_mutex_);
  std::uint64_t snapshot_bytes_ GUARDED_BY(house_mutex_) = 0;
  std::uint64_t log_bytes_ GUARDED_BY(house_mutex_) = 0;  // written by the last snapshot's begin
  MonoTime not_before_ GUARDED_BY(house_mutex_){};        // the next try after one that failed
  std::string trouble_ GUARDED_BY(house_mutex_);          // of the last try; empty: none

  Combiner<Pending> commits_;
};

}  // namespace stint::store
