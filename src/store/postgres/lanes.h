// What several threads ask at the same time travels together.
//
// A few lanes are led at a time. Whoever finds one free goes at once, alone. Who finds none waits
// in line, and the next leader takes all who wait there. Nobody waits for long: a lane may stand
// still (a row that a guard holds), and who has waited in line goes alone, beside the lanes. So a
// batch is made only where there are more callers than lanes, and must not wait for anybody's rows
// itself.
//
// Thread safety: run() may be called from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/futex.h"

namespace stint::store::postgres {

// REQUIRES of Task: a member `answer`, an optional.
template <class Task>
class Lanes {
 public:
  struct Ways {
    std::function<void(Task&)> alone;  // gives it its answer
    // Gives answers to those that it can; the others go alone after it, each in its own thread.
    std::function<void(const std::vector<Task*>&)> together;
    std::size_t lanes = 1;
    std::size_t most_together = 32;
    Nanos longest_wait = Millis(10);
  };
  explicit Lanes(Ways ways) : ways_(std::move(ways)) {}

  // Returns when `task` has its answer.
  void run(Task& task) {
    Waiter own{task};
    bool leads = false;
    {
      const MutexLock lock(mutex_);
      leads = leaders_ < ways_.lanes + still_ && line_.empty();
      if (leads) {
        ++leaders_;
      } else {
        line_.push_back(&own);
      }
    }
    if (leads || wait(own)) lead(own);
    if (!task.answer) ways_.alone(task);
  }

  std::size_t waiting() const {
    const MutexLock lock(mutex_);
    return line_.size();
  }

 private:
  struct Waiter {
    enum State : std::uint32_t { kWaiting, kLeads, kTravelled };
    Task& task;
    // Written last, by whoever took it out of the line: it may be gone at once.
    std::atomic<std::uint32_t> state = kWaiting;
  };

  // True: it leads. False: it has travelled, or waited long enough.
  bool wait(Waiter& own) EXCLUDES(mutex_) {
    const MonoTime until = os::system_clock().mono() + ways_.longest_wait;
    while (true) {
      const std::uint32_t state = own.state;
      if (state != Waiter::kWaiting) return state == Waiter::kLeads;
      const Nanos left = until - os::system_clock().mono();
      if (left > Nanos(0)) {
        os::futex_wait_for(own.state, Waiter::kWaiting, left);
      } else if (leave(own)) {
        return false;
      } else {
        os::futex_wait(own.state, Waiter::kWaiting);  // it is on its way
      }
    }
  }

  bool leave(Waiter& own) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto place = std::ranges::find(line_, &own);
    if (place == line_.end()) return false;
    line_.erase(place);
    still_ = std::min(still_ + 1, leaders_);
    return true;
  }

  void lead(Waiter& own) EXCLUDES(mutex_) {
    const MonoTime begun = os::system_clock().mono();
    std::vector<Waiter*> others;
    {
      const MutexLock lock(mutex_);
      while (!line_.empty() && others.size() + 1 < ways_.most_together) {
        others.push_back(line_.front());
        line_.pop_front();
      }
    }
    if (others.empty()) {
      ways_.alone(own.task);
    } else {
      std::vector<Task*> tasks = {&own.task};
      for (const Waiter* other : others) tasks.push_back(&other->task);
      ways_.together(tasks);
    }
    // The lane goes on before those who travelled are woken: the server need not wait for that.
    hand_over(os::system_clock().mono() - begun);
    for (Waiter* other : others) wake(*other, Waiter::kTravelled);
  }

  void hand_over(Nanos took) EXCLUDES(mutex_) {
    Waiter* next = nullptr;
    {
      const MutexLock lock(mutex_);
      if (still_ > 0 && took >= ways_.longest_wait) --still_;
      if (line_.empty() || leaders_ > ways_.lanes + still_) {
        --leaders_;
        still_ = std::min(still_, leaders_);
        return;
      }
      // Out of the line: a leader is nobody's to take.
      next = line_.front();
      line_.pop_front();
    }
    wake(*next, Waiter::kLeads);
  }

  static void wake(Waiter& waiter, typename Waiter::State state) {
    const auto& word = waiter.state;
    waiter.state = state;
    os::futex_wake_one(word);
  }

  const Ways ways_;
  mutable Mutex mutex_;
  std::deque<Waiter*> line_ GUARDED_BY(mutex_);
  std::size_t leaders_ GUARDED_BY(mutex_) = 0;
  std::size_t still_ GUARDED_BY(mutex_) = 0;  // of those, who kept somebody waiting for too long
};

}  // namespace stint::store::postgres
