// Calls of several threads that arrive together are done together, by one of them.
//
// The first thread to come leads: it takes all that wait, does them as one batch, and hands over to
// one of those who came meanwhile. That is what makes one disk sync serve many. All who wait for
// one batch sleep on one word and are woken by one system call.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "os/futex.h"

namespace stint::store {

// REQUIRES: the batch function finishes every task that it is given, and throws nothing.
template <class Task>
class Combiner {
 public:
  using Work = std::function<void(const std::vector<Task*>&)>;
  explicit Combiner(Work work) : work_(std::move(work)) {}

  // Returns when `task` is done.
  void run(Task& task) { run(std::vector<Task*>{&task}); }
  // The same for several of one caller: they are of one batch.
  void run(const std::vector<Task*>& tasks) {
    if (tasks.empty()) return;
    std::shared_ptr<Round> round;  // shared: the leader wakes sleepers who may be gone by then
    bool leads = false;
    {
      const MutexLock lock(mutex_);
      line_.insert(line_.end(), tasks.begin(), tasks.end());
      round = next_;
      leads = !led_;
      led_ = true;
    }
    if (leads || round->wait()) lead();
  }

 private:
  // Those who wait for one batch.
  class Round {
   public:
    // True: to lead it. False: it is done.
    bool wait() {
      while (true) {
        std::uint32_t state = state_.load();
        if (state == kDone) return false;
        if (state == kWantsLeader && state_.compare_exchange_strong(state, kWaiting)) return true;
        os::futex_wait(state_, kWaiting);
      }
    }
    void finish() {
      state_.store(kDone);
      os::futex_wake_all(state_);
    }
    void find_leader() {
      state_.store(kWantsLeader);
      os::futex_wake_one(state_);
    }

   private:
    static constexpr std::uint32_t kWaiting = 0;
    static constexpr std::uint32_t kWantsLeader = 1;
    static constexpr std::uint32_t kDone = 2;
    std::atomic<std::uint32_t> state_ = kWaiting;
  };

  void lead() {
    std::vector<Task*> batch;
    std::shared_ptr<Round> round = std::make_shared<Round>();
    {
      const MutexLock lock(mutex_);
      batch.swap(line_);
      round.swap(next_);
    }
    work_(batch);
    if (batch.size() > 1) round->finish();
    {
      const MutexLock lock(mutex_);
      led_ = !line_.empty();
      round = led_ ? next_ : nullptr;
    }
    if (round) round->find_leader();
  }

  const Work work_;
  Mutex mutex_;
  std::vector<Task*> line_ GUARDED_BY(mutex_);
  std::shared_ptr<Round> next_ GUARDED_BY(mutex_) = std::make_shared<Round>();
  bool led_ GUARDED_BY(mutex_) = false;
};

}  // namespace stint::store
