// Stores that only pretend: each breaks one promise of the seam, as real products do.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "store/memory/memory_store.h"
#include "store/seam.h"

namespace stint::test {

// Passes everything on to a store that others share.
class SharedStore : public store::Store {
 public:
  explicit SharedStore(std::shared_ptr<store::Store> store) : store_(std::move(store)) {}
  const store::Capabilities& capabilities() const override { return store_->capabilities(); }
  const store::Opening& opening() const override { return store_->opening(); }
  Result<store::Reading> read(const std::vector<std::string>& keys) override {
    return store_->read(keys);
  }
  Result<store::Reading> scan(const ScanRange& range) override { return store_->scan(range); }
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    return store_->commit(steps, sync);
  }
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override { return store_->watch(key); }
  Result<std::uint64_t> appended(const std::string& prefix) override {
    return store_->appended(prefix);
  }
  Result<std::uint64_t> revision() override { return store_->revision(); }

 private:
  std::shared_ptr<store::Store> store_;  // shared: every opening is the same store
};

// Does not look at what a commit expects: the last writer wins.
class LastWriterWins final : public SharedStore {
 public:
  using SharedStore::SharedStore;
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override;
};

// Answers reads from a copy that is brought up to date only now and then.
class EventuallyConsistent final : public SharedStore {
 public:
  using SharedStore::SharedStore;
  Result<store::Reading> read(const std::vector<std::string>& keys) override;

 private:
  unsigned reads_ = 0;
  std::map<std::string, store::Entry> copy_;
};

// A clock that jumps an hour ahead when told.
class JumpingClock final : public Clock {
 public:
  explicit JumpingClock(const Clock& real) : real_(real) {}
  void jump() { ahead_ = true; }
  MonoTime mono() const override {
    return ahead_ ? real_.mono() + std::chrono::hours(1) : real_.mono();
  }
  WallTime wall() const override { return real_.wall(); }

 private:
  const Clock& real_;
  std::atomic<bool> ahead_ = false;
};

}  // namespace stint::test
