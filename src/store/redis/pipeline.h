// Questions of many threads over one connection: those that arrive together travel together.
//
// There is no thread in here. Whoever comes first leads: it takes what is waiting, sends it at
// once, reads all answers, and hands the lead to the next in line. Meanwhile the others queue up
// for the next turn.
//
// Thread safety: every method may be called from any thread.
#pragma once

#include <condition_variable>
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
  using Connect = std::function<Result<std::unique_ptr<Link>>(MonoTime until)>;
  Pipeline(const Options& options, Connect connect);

  // Code::UnknownOutcome: it changes something, was sent, and no answer came.
  Result<Answer> ask(const Question& question, MonoTime until);
  // The next question goes over a new connection.
  void forget_link();

 private:
  struct Task {
    const Question& question;
    MonoTime until;
    std::condition_variable_any woken;
    bool leads = false;
    bool done = false;
    std::optional<Result<Answer>> answer;
  };

  void lead(Task& own) EXCLUDES(mutex_);
  Status ensure_link(MonoTime until);
  // Little time left means that it waited behind somebody who got no answer. Sent now, its end
  // would be the end of those who travel with it.
  bool too_late(const Task& task) const;
  Error not_in_time() const;
  std::vector<Task*> take(const Task& own) EXCLUDES(mutex_);
  void exchange(const std::vector<Task*>& batch, MonoTime until);
  Status receive_all(const std::vector<Task*>& batch, bool waits, MonoTime until);
  Error lost(const Task& task, const Error& why) const;

  const Options& options_;
  const Connect connect_;

  // Only the leader's.
  std::unique_ptr<Link> link_;

  Mutex mutex_;
  std::deque<Task*> line_ GUARDED_BY(mutex_);
  bool led_ GUARDED_BY(mutex_) = false;
  bool forget_ GUARDED_BY(mutex_) = false;
};

}  // namespace stint::store::redis
