// Questions of many threads over few connections: those that arrive together travel together.
//
// There is no thread in here. Whoever comes first leads a lane: it takes what is waiting, sends it
// at once, reads all answers, and hands the lane to the next in line. Meanwhile the others queue up
// for the next turn. Where many wait while one lane is under way, a second one is led beside it:
// the server works on one batch while this side is busy with the other. Two questions that are
// under way at the same time have no order among them.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "store/redis/link.h"

namespace stint::store::redis {

struct Question {
  std::string bytes;
  std::size_t answers = 1;  // how many replies belong to it
  bool changes = false;     // sent and not answered: the outcome is unknown
  bool durable = false;     // to be followed by WAIT, where replicas are waited for
};

struct Answer {
  std::vector<Reply> replies;
  std::optional<std::int64_t> replicas;  // how many have it, where that was asked
};

class Pipeline {
 public:
  // May be called for two lanes at once.
  using Connect = std::function<Result<std::unique_ptr<Link>>(MonoTime until)>;
  Pipeline(const Options& options, Connect connect);

  // Code::UnknownOutcome: it changes something, was sent, and no answer came.
  Result<Answer> ask(const Question& question, MonoTime until);
  // Every question from now on goes over a new connection.
  void forget_link();

 private:
  static constexpr std::size_t kLanes = 2;

  struct Task {
    enum State : std::uint32_t { kWaiting, kLeads, kDone };
    const Question& question;
    MonoTime until;
    std::size_t lane = 0;  // where it leads
    std::optional<Result<Answer>> answer = {};
    // Written last, by whoever took it out of the line: it may be gone at once.
    std::atomic<std::uint32_t> state = kWaiting;
  };

  // A lane for a newcomer to lead; empty: it waits in line.
  std::optional<std::size_t> free_lane() const REQUIRES(mutex_);
  // True: it leads. False: it has its answer.
  bool wait(Task& own) EXCLUDES(mutex_);
  static void wake(Task& task, Task::State state);
  void lead(Task& own) EXCLUDES(mutex_);
  void hand_over(std::size_t lane) EXCLUDES(mutex_);
  Status ensure_link(std::size_t lane, MonoTime until);
  // Little time left means that it waited behind somebody who got no answer. Sent now, its end
  // would be the end of those who travel with it.
  bool too_late(const Task& task) const;
  Error not_in_time() const;
  // What is waiting, out of the line; those that are too late have their answers.
  std::vector<Task*> take(const Task& own) EXCLUDES(mutex_);
  void exchange(std::unique_ptr<Link>& link, const std::vector<Task*>& batch, MonoTime until);
  Status receive_all(Link& link, const std::vector<Task*>& batch, bool waits, MonoTime until);
  Error lost(const Task& task, const Error& why) const;

  const Options& options_;
  const Connect connect_;

  // Each only its leader's.
  std::array<std::unique_ptr<Link>, kLanes> links_;

  Mutex mutex_;
  std::deque<Task*> line_ GUARDED_BY(mutex_);
  std::array<bool, kLanes> led_ GUARDED_BY(mutex_) = {};
  std::array<bool, kLanes> forget_ GUARDED_BY(mutex_) = {};
};

}  // namespace stint::store::redis
