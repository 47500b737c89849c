// A store to whom something happens between a read and the next commit.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "store/shared_store.h"

namespace stint::testing {

class Meanwhile final : public store::SharedStore {
 public:
  explicit Meanwhile(std::shared_ptr<store::Store> store) : SharedStore(std::move(store)) {}
  void before_commit(std::function<void()> what) { what_ = std::move(what); }
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    if (what_) std::exchange(what_, {})();
    last_sync_ = sync;
    if (then_) {
      std::exchange(then_, {})();
      return Error{Code::UnknownOutcome, "played"};
    }
    return SharedStore::commit(steps, sync);
  }
  // The next commit is not made, and not answered; then something happens.
  void lose_commit(std::function<void()> then) { then_ = std::move(then); }
  // Of the last commit.
  store::Sync last_sync() const { return last_sync_; }

 private:
  std::function<void()> what_;
  std::function<void()> then_;
  store::Sync last_sync_ = store::Sync::Relaxed;
};

}  // namespace stint::testing
