// `memory:` - the store of tests and of the simulation. Lives and dies with the process.
#pragma once

#include <map>
#include <memory>

#include "base/mutex.h"
#include "store/seam.h"

namespace stint::store {

struct MemoryWatches;

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(const Clock& clock);
  ~MemoryStore() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  const Opening& opening() const override { return opening_; }
  Result<Reading> read(const std::vector<std::string>& keys) override;
  Result<Reading> scan(const ScanRange& range) override;
  Result<CommitAnswer> commit(const std::vector<Step>& steps, Sync sync) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override;
  Result<std::uint64_t> appended(const std::string& prefix) override;
  Result<std::uint64_t> revision() override;

  // All that it holds, as it is now: a backup, or what a replica has.
  struct Record {
    std::string value;
    Version version = 0;
    std::optional<MonoTime> fires_at;
    Millis ttl{0};
  };
  struct Image {
    std::map<std::string, Record, std::less<>> records;
    Version last_version = 0;
  };
  Image image() const;
  // Goes back to it. Versions go on from where the image was, and `ahead` further.
  void restore(const Image& image, Version ahead);

 private:
  class WakeUp;

  Entry entry(const std::string& key, MonoTime now) const REQUIRES(mutex_);
  TimerState timer_state(const std::string& key, MonoTime now) const REQUIRES(mutex_);
  bool holds(const Step& step, MonoTime now) const REQUIRES(mutex_);
  Version apply(const Step& step, MonoTime now) REQUIRES(mutex_);
  std::string next_key(const std::string& prefix) const REQUIRES(mutex_);
  Reading reading(MonoTime now) const;

  const Clock& clock_;
  const Capabilities capabilities_;
  const Opening opening_;

  mutable Mutex mutex_;
  std::map<std::string, Record, std::less<>> records_ GUARDED_BY(mutex_);
  Version last_version_ GUARDED_BY(mutex_) = 0;
  // Shared with the watches: a watch may outlive the store.
  std::shared_ptr<MemoryWatches> watches_;
};

}  // namespace stint::store
