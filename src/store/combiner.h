// Calls of several threads that arrive together are done together, by one of them.
//
// The first thread to come leads: it takes what is waiting, does it as one batch, and goes on until
// its own is done; then the next in line leads. While it works, the others queue up for the next
// batch. That is what makes one disk sync, or one read transaction, serve many.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <vector>

#include "base/mutex.h"

namespace stint::store {

// REQUIRES: the batch function finishes every task that it is given, and throws nothing.
template <class Task>
class Combiner {
 public:
  using Work = std::function<void(const std::vector<Task*>&)>;
  Combiner(std::size_t most, Work work) : most_(most), work_(std::move(work)) {}

  // Returns when `task` is done.
  void run(Task& task) {
    Place own{&task};
    bool leads = false;
    {
      MutexLock lock(mutex_);
      line_.push_back(&own);
      leads = !led_;
      led_ = true;
    }
    if (leads || own.wait()) lead(own);
  }

 private:
  // A plain wait, without spinning: on few cores many spinners keep the leader from its work.
  class Place {
   public:
    explicit Place(Task* own) : task(own) {}
    Task* const task;
    bool done = false;  // only the leader's own thread asks

    // True: to lead. False: done.
    bool wait() {
      MutexLock lock(mutex_);
      while (state_ == State::Waiting) changed_.wait(lock);
      return state_ == State::Leads;
    }
    void finish() { set(State::Done); }
    void lead() { set(State::Leads); }

   private:
    enum class State { Waiting, Leads, Done };
    void set(State state) {
      const MutexLock lock(mutex_);
      state_ = state;
      // Under the lock: when it is given up, the waiter may be gone, and this with it.
      changed_.notify_one();
    }
    Mutex mutex_;
    std::condition_variable_any changed_;
    State state_ GUARDED_BY(mutex_) = State::Waiting;
  };

  std::vector<Place*> take() {
    const MutexLock lock(mutex_);
    std::vector<Place*> batch;
    while (!line_.empty() && batch.size() < most_) {
      batch.push_back(line_.front());
      line_.pop_front();
    }
    return batch;
  }

  void lead(Place& own) {
    while (!own.done) {
      const std::vector<Place*> batch = take();
      std::vector<Task*> tasks;
      for (const Place* place : batch) tasks.push_back(place->task);
      work_(tasks);
      for (Place* place : batch) {
        if (place == &own) {
          own.done = true;
        } else {
          place->finish();
        }
      }
    }
    Place* next = nullptr;
    {
      const MutexLock lock(mutex_);
      if (line_.empty()) {
        led_ = false;
      } else {
        next = line_.front();
      }
    }
    if (next != nullptr) next->lead();
  }

  const std::size_t most_;
  const Work work_;
  Mutex mutex_;
  std::deque<Place*> line_ GUARDED_BY(mutex_);
  bool led_ GUARDED_BY(mutex_) = false;
};

}  // namespace stint::store
