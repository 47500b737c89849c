// Stores that only pretend: each breaks one promise of the seam, as real products do.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>

#include "store/memory/memory_store.h"
#include "store/seam.h"
#include "store/shared_store.h"

namespace stint::test {

using store::SharedStore;

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
