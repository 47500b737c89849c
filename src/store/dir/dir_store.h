// `dir:PATH` - a shared directory: NFS or any other mount between machines.
//
// A numbered log of files. A commit is one file, written and synced under another name and put in
// place by link(2) as the next number; who finds the number taken reads what is there and decides
// again. No safety rests on a lock, on a listing or on a cache (docs/adr/0010). Time is the file
// server's: the ctime of files.  G4 G11
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "os/random.h"
#include "os/wake_files.h"
#include "store/combiner.h"
#include "store/dir/log_writer.h"
#include "store/dir/plan.h"
#include "store/dir/replica.h"
#include "store/dir/server_clock.h"
#include "store/seam.h"

namespace stint::store {

struct DirOptions {
  std::string path;
  Millis timeout{5000};  // the longest that a commit tries against other writers
  bool may_create = true;
  bool accept_copy = false;    // an operator says that this copy of a store is to be used
  std::optional<Millis> poll;  // waiters look this often; not given: where the mount needs it
  bool readable = true;        // keep the readable copy
  std::size_t snapshot_every = 64;
};

class DirStore final : public Store {
 public:
  static Result<std::unique_ptr<DirStore>> open(const DirOptions& options, const Clock& clock);
  ~DirStore() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  const Opening& opening() const override { return opening_; }
  Result<Reading> read(const std::vector<std::string>& keys) override;
  Result<Reading> scan(const ScanRange& range) override;
  Result<CommitAnswer> commit(const std::vector<Step>& steps, Sync sync) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override;
  Result<std::uint64_t> appended(const std::string& prefix) override;
  Result<std::uint64_t> revision() override;
  Result<std::vector<Finding>> examine() override;
  Status accept() override;

 private:
  struct Pending;
  // A file on its way into the log.
  struct Draft {
    dir::LogFile file;
    dir::Staged staged;
    os::FileFacts below;  // the number before it, as it was read
  };
  enum class Attempt { Done, Again };

  DirStore(DirOptions options, const Clock& clock, dir::Place place);
  Status enter();

  void run_in_parts(const std::vector<Pending*>& batch);
  void run_batch(const std::vector<Pending*>& batch);
  Result<Attempt> attempt(const std::vector<Pending*>& batch);
  Result<std::optional<Draft>> draft(const std::vector<Pending*>& batch);
  static Result<dir::Plan> plan(const std::vector<Pending*>& batch, const dir::State& state,
                                dir::Number number, Nanos now);
  void begin_file(dir::LogFile& file) REQUIRES(mutex_);
  Result<Attempt> settle(Draft& draft, const dir::Placed& placed);
  Result<Attempt> settle_stray(const dir::LogFile& file);
  void tell(const std::vector<Pending*>& batch, const dir::LogFile& file) const;
  using Fill = std::function<bool(dir::LogFile&, const dir::Replica&)>;
  Result<bool> commit_file(const Fill& fill);

  void snapshot_if_due();
  Status snapshot();
  Result<std::string> write_table(const dir::Base& base, const dir::Overlay& overlay,
                                  dir::Tables& tables);
  void clean(const dir::Base& base, dir::Number base_at, const std::vector<std::string>& before);

  // Constant after construction.
  const DirOptions options_;
  const Clock& clock_;
  const dir::Place place_;
  const os::WakeFiles wake_files_;
  Capabilities capabilities_;
  Opening opening_;
  std::optional<Millis> poll_;

  // This connection's lock: held over reads of the log, never over a sync or a link.
  Mutex mutex_;
  dir::Replica replica_ GUARDED_BY(mutex_);
  dir::ServerClock server_clock_ GUARDED_BY(mutex_);
  os::SystemRandom random_ GUARDED_BY(mutex_);

  // Only who leads a batch uses it.
  MonoTime no_courtesy_before_{};
  std::atomic<bool> snapshotting_ = false;
  Combiner<Pending> commits_;
};

}  // namespace stint::store
