// A store that is compared with what is remembered of it at every look: whatever gives out a token,
// an item or a slot looks first, so a store that goes back in time under a program that stays is
// refused as it is at a start. No look costs a round trip more: the proof is read along.   G1 G12
//
// What is remembered is asked for before the store is: a look never misses what it must show.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "service/store_life.h"
#include "store/seam.h"
#include "store/troubled.h"

namespace stint::service {

class WatchedStore : public store::Store, public store::Troubled {
 public:
  using Tell = std::function<void(const std::string& why)>;
  // `store` and `anchors` outlive it.
  WatchedStore(store::Store& store, Anchors& anchors) : store_(store), anchors_(anchors) {}

  // From here on it is one that was well: when it goes back, `tell` hears of it, once each time.
  void begun(Tell tell);
  // Why it is refused; empty: it is well.
  std::string trouble() const override;

  const store::Capabilities& capabilities() const override { return store_.capabilities(); }
  const store::Opening& opening() const override { return store_.opening(); }
  Result<store::Reading> read(const std::vector<std::string>& keys) override;
  Result<store::Reading> scan(const ScanRange& range) override { return store_.scan(range); }
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override;
  Result<std::unique_ptr<Watch>> watch(std::string_view key) override { return store_.watch(key); }
  Result<std::vector<store::Finding>> examine() override { return store_.examine(); }
  Status accept() override { return store_.accept(); }
  Result<std::uint64_t> appended(const std::string& prefix) override {
    return store_.appended(prefix);
  }
  Result<std::uint64_t> revision() override { return store_.revision(); }

 protected:
  // What a commit's answer says of the store, beside what was known before it was sent.
  struct Sent {
    std::uint64_t life = 0;
    std::uint64_t newest = 0;
  };
  Sent sending() const;
  void learn(const std::vector<store::Step>& steps, store::Sync sync, const Sent& sent,
             const Result<store::CommitAnswer>& answer);

 private:
  Status check(const Anchor& known, const store::Entry* proof);
  void note(std::uint64_t turn, const Status& found);

  store::Store& store_;
  Anchors& anchors_;
  std::atomic<std::uint64_t> turns_ = 0;
  mutable Mutex mutex_;
  Tell tell_ GUARDED_BY(mutex_);
  std::uint64_t judged_ GUARDED_BY(mutex_) = 0;  // the last look that said something
  std::string trouble_ GUARDED_BY(mutex_);
  bool went_back_ GUARDED_BY(mutex_) = false;    // and that was told
  std::uint64_t lives_ GUARDED_BY(mutex_) = 0;   // generations that were seen
  std::uint64_t newest_ GUARDED_BY(mutex_) = 0;  // of this one's durable commits, as acknowledged
  // A commit's answer was older than one before it.
  struct Behind {
    std::uint64_t now = 0;
    std::uint64_t seen = 0;
  };
  std::optional<Behind> behind_ GUARDED_BY(mutex_);
};

// The same with many commits at once, where the store can.
std::unique_ptr<WatchedStore> watch_over(store::Store& store, Anchors& anchors);

}  // namespace stint::service
