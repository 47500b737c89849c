// What several threads ask at the same time travels together.
//
// A few lanes are led at a time. Whoever finds one free goes at once, alone. Who finds none waits
// in line, and the next leader takes all who wait there. So a batch is made only where there are
// more callers than lanes.
//
// A lane may stand still: who goes alone may have to wait for a row that a guard holds, and on a
// machine that others use everything takes long now and then. Then the first who has waited long
// enough leads a lane in its stead and takes the line along: one more leader, and nobody goes alone
// only because it took long. A batch must not wait for anybody's rows.
//
// Thread safety: run() may be called from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
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
    Nanos longest_wait = Millis(3);  // what takes longer is taken to stand still
  };
  explicit Lanes(Ways ways) : ways_(std::move(ways)) {}

  // Returns when `task` has its answer.
  void run(Task& task) {
    Waiter own{task};
    bool leads = false;
    {
      const MutexLock lock(mutex_);
      leads = line_.empty() && moving() < ways_.lanes;
      leads ? begin(own) : line_.push_back(&own);
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
    // Of who leads.
    std::vector<Waiter*> others = {};  // whom it takes along
    MonoTime begun{};                  // under the lock, like the next
    bool still = false;
  };

  // True: it leads. False: it has travelled.
  bool wait(Waiter& own) EXCLUDES(mutex_) {
    Nanos left = ways_.longest_wait;
    while (own.state == Waiter::kWaiting) {
      os::futex_wait_for(own.state, Waiter::kWaiting, left);
      if (own.state != Waiter::kWaiting) break;
      const auto more = patience(own);
      if (!more) {
        os::futex_wait(own.state, Waiter::kWaiting);  // it is on its way
      } else if (*more <= Nanos(0)) {
        return true;
      } else {
        left = *more;
      }
    }
    return own.state == Waiter::kLeads;
  }

  // How long it has yet to wait for a lane to move; none left: it leads, in the stead of one that
  // stands still. Nothing: somebody has taken it along.
  std::optional<Nanos> patience(Waiter& own) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto place = std::ranges::find(line_, &own);
    if (place == line_.end()) return std::nullopt;
    // There is one: whoever waits in line found all lanes taken.
    const auto oldest = std::ranges::find(leaders_, false, &Waiter::still);
    CHECK(oldest != leaders_.end(), "somebody waits in line beside a free lane");
    const Nanos left = (*oldest)->begun + ways_.longest_wait - os::system_clock().mono();
    if (left > Nanos(0)) return left;
    (*oldest)->still = true;
    line_.erase(place);
    begin(own);
    // At once: the others have waited as long, and would replace the next lane.
    take_line(own);
    return Nanos(0);
  }

  void lead(Waiter& own) EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      take_line(own);
    }
    if (own.others.empty()) {
      ways_.alone(own.task);
    } else {
      std::vector<Task*> tasks = {&own.task};
      for (const Waiter* other : own.others) tasks.push_back(&other->task);
      ways_.together(tasks);
    }
    // The lane goes on before those who travelled are woken: the server need not wait for that.
    hand_over(own);
    for (Waiter* other : own.others) wake(*other, Waiter::kTravelled);
  }

  void hand_over(Waiter& own) EXCLUDES(mutex_) {
    Waiter* next = nullptr;
    {
      const MutexLock lock(mutex_);
      std::erase(leaders_, &own);
      if (line_.empty() || moving() >= ways_.lanes) return;
      // Out of the line: a leader is nobody's to take.
      next = line_.front();
      line_.pop_front();
      begin(*next);
    }
    wake(*next, Waiter::kLeads);
  }

  void take_line(Waiter& own) REQUIRES(mutex_) {
    while (!line_.empty() && own.others.size() + 1 < ways_.most_together) {
      own.others.push_back(line_.front());
      line_.pop_front();
    }
  }

  void begin(Waiter& own) REQUIRES(mutex_) {
    own.begun = os::system_clock().mono();
    leaders_.push_back(&own);
  }

  // Lanes that do not stand still.
  std::size_t moving() const REQUIRES(mutex_) {
    return static_cast<std::size_t>(std::ranges::count(leaders_, false, &Waiter::still));
  }

  static void wake(Waiter& waiter, typename Waiter::State state) {
    const auto& word = waiter.state;
    waiter.state = state;
    os::futex_wake_one(word);
  }

  const Ways ways_;
  mutable Mutex mutex_;
  std::deque<Waiter*> line_ GUARDED_BY(mutex_);
  std::vector<Waiter*> leaders_ GUARDED_BY(mutex_);  // in the order in which they began
};

}  // namespace stint::store::postgres
