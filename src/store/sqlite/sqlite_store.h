// `sqlite:PATH` - the default store: one file, several processes of one machine.
//
// Write-ahead log; a durable commit is synced before it is acknowledged, and commits of several
// threads that arrive together share one transaction and one sync. Time is the boot-time clock,
// named in the file (boot, time namespace, machine), so that no step of the wall clock moves a
// lease.  G4 G11
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "os/clock.h"
#include "os/files.h"
#include "os/wake_files.h"
#include "store/combiner.h"
#include "store/many.h"
#include "store/reboot.h"
#include "store/seam.h"
#include "store/sqlite/view.h"

namespace stint::store {

class Batch;
class Database;

struct SqliteOptions {
  std::string path;
  os::ClockName clock_name;
  Millis busy{5000};  // the longest wait for another process
  bool may_create = true;
  bool accept_copy = false;  // an operator says that this copy of a store is to be used
};

class SqliteStore final : public Store, public ManyCommits {
 public:
  static Result<std::unique_ptr<SqliteStore>> open(const SqliteOptions& options,
                                                   const Clock& clock);
  ~SqliteStore() override;

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

 private:
  struct Pending;
  class Borrowed;
  class ReadTransaction;

  SqliteStore(SqliteOptions options, const Clock& clock);
  enum class Use { Read, Write };
  Result<Borrowed> borrow(Use use);
  Result<Borrowed> lend(std::unique_ptr<Database> idle);
  Result<Borrowed> open_another();
  std::unique_ptr<Database> take_idle(Use use) REQUIRES(mutex_);
  void give_back(std::unique_ptr<Database> connection, bool healthy);
  Error moved_error() const;

  // The file at the path is the one that was entered.
  bool in_place() const;
  Result<std::vector<Row>> read_rows(const std::vector<std::string>& keys);
  Result<FoundRows> scan_rows(const ScanRange& range);
  std::string before_oldest(const std::string& prefix);
  void run_batch(const std::vector<Pending*>& batch);
  Status commit_batch(const std::vector<Pending*>& batch, bool& unknown);
  Status apply_batch(Batch& transaction, const std::vector<Pending*>& batch, bool stays);
  void wake(const std::vector<Pending*>& batch);

  // A sync failed: the log in the cache may be better than the one on the disk.
  // A sync that fails while another copies the log is not covered by that copy.
  std::atomic<std::uint64_t> failed_syncs_ = 0;
  std::atomic<std::uint64_t> copied_after_ = 0;  // so many of them

  std::atomic<unsigned> batches_ = 0;

  // Constant after construction.
  const SqliteOptions options_;
  const Clock& clock_;
  const Capabilities capabilities_;
  const os::WakeFiles wake_files_;
  std::optional<os::FileId> entered_file_;
  Opening opening_;
  Boots boots_;

  Mutex mutex_;
  std::condition_variable_any returned_;
  std::vector<std::unique_ptr<Database>> idle_ GUARDED_BY(mutex_);
  std::size_t open_ GUARDED_BY(mutex_) = 0;
  const Database* writer_ GUARDED_BY(mutex_) = nullptr;  // of the last commit; may be lent
  std::map<std::string, std::uint64_t> oldest_ GUARDED_BY(mutex_);  // appended: as last seen

  View view_;
  Combiner<Pending> commits_;
};

}  // namespace stint::store
