#include "store/redis/pipeline.h"

#include <algorithm>

#include "base/text.h"
#include "os/clock.h"

namespace stint::store::redis {
namespace {

constexpr std::size_t kMostTogether = 256;
constexpr std::size_t kMostBytes = 1U << 20U;

}  // namespace

Pipeline::Pipeline(const Options& options, Connect connect)
    : options_(options), connect_(std::move(connect)) {}

void Pipeline::forget_link() {
  const MutexLock lock(mutex_);
  forget_ = true;
}

Result<Answer> Pipeline::ask(const Question& question, MonoTime until) {
  Task own{question, until, {}, false, false, {}};
  {
    MutexLock lock(mutex_);
    if (led_) {
      line_.push_back(&own);
      while (!own.done && !own.leads) {
        const Nanos left = own.until - os::system_clock().mono();
        if (left > Nanos(0)) {
          own.woken.wait_for(lock, left);
          continue;
        }
        const auto waiting = std::ranges::find(line_, &own);
        if (waiting != line_.end()) {
          line_.erase(waiting);
          return not_in_time();
        }
        // It is on its way, and its own deadline ends the leader's wait.
        own.woken.wait(lock);
      }
      if (own.done) return std::move(*own.answer);
    }
    led_ = true;
  }
  lead(own);
  {
    const MutexLock lock(mutex_);
    if (line_.empty()) {
      led_ = false;
    } else {
      // Out of the line: a leader is nobody's to take.
      Task* const next = line_.front();
      line_.pop_front();
      next->leads = true;
      next->woken.notify_one();
    }
  }
  return std::move(*own.answer);
}

bool Pipeline::too_late(const Task& task) const {
  return task.until - os::system_clock().mono() < options_.timeout / 8;
}

Error Pipeline::not_in_time() const {
  return unavailable(cat("the Redis at ", options_.where(), " does not answer in time"));
}

std::vector<Pipeline::Task*> Pipeline::take(const Task& own) {
  std::vector<Task*> batch;
  std::size_t bytes = own.question.bytes.size();
  const MutexLock lock(mutex_);
  while (!line_.empty() && batch.size() < kMostTogether && bytes < kMostBytes) {
    Task* const next = line_.front();
    line_.pop_front();
    if (too_late(*next)) {
      next->answer = not_in_time();
      next->done = true;
      next->woken.notify_one();
      continue;
    }
    bytes += next->question.bytes.size();
    batch.push_back(next);
  }
  return batch;
}

Status Pipeline::ensure_link(MonoTime until) {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(forget_, false)) link_.reset();
  }
  // A connection that the server closed while it was idle must not make a commit unknown.
  if (link_ && link_->quiet()) return {};
  link_.reset();
  auto made = connect_(until);
  if (!made) return made.error();
  link_ = std::move(*made);
  return {};
}

void Pipeline::lead(Task& own) {
  if (too_late(own)) {
    own.answer = not_in_time();
    return;
  }
  if (auto ok = ensure_link(own.until); !ok) {
    own.answer = ok.error();
    return;
  }
  std::vector<Task*> batch = take(own);
  batch.insert(batch.begin(), &own);
  const auto first =
      std::ranges::min_element(batch, {}, [](const Task* task) { return task->until; });
  exchange(batch, (*first)->until);
  const MutexLock lock(mutex_);
  for (Task* task : batch) {
    task->done = true;
    // Under the lock: when it is given up, the waiter may be gone, and this with it.
    if (task != &own) task->woken.notify_one();
  }
}

Error Pipeline::lost(const Task& task, const Error& why) const {
  if (!task.question.changes) {
    return unavailable(cat("the Redis at ", options_.where(), ": ", why.message));
  }
  return {Code::UnknownOutcome, cat("sent to the Redis at ", options_.where(),
                                    ", but no answer came (", why.message, ")")};
}

void Pipeline::exchange(const std::vector<Task*>& batch, MonoTime until) {
  std::string joined;
  std::string_view bytes = batch.front()->question.bytes;
  const bool waits = options_.wait > 0 && std::ranges::any_of(batch, [](const Task* task) {
                       return task->question.durable;
                     });
  if (batch.size() > 1 || waits) {
    for (const Task* task : batch) joined += task->question.bytes;
    // One for all: it waits for everything that came before it.
    if (waits) {
      const auto most =
          std::chrono::duration_cast<Millis>(until - os::system_clock().mono()) * 3 / 4;
      append_command(joined, {"WAIT", std::to_string(options_.wait),
                              std::to_string(std::max<std::int64_t>(most.count(), 1))});
    }
    bytes = joined;
  }
  bool sent = false;
  Status went = link_->send(bytes, until, sent);
  if (went) went = receive_all(batch, waits, until);
  if (went) return;
  link_.reset();
  for (Task* task : batch) {
    if (task->answer) continue;
    task->answer =
        sent ? lost(*task, went.error())
             : unavailable(cat("the Redis at ", options_.where(), ": ", went.error().message));
  }
}

// A task has its answer only when all that belongs to it is there.
Status Pipeline::receive_all(const std::vector<Task*>& batch, bool waits, MonoTime until) {
  std::vector<Answer> answers(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    while (answers[i].replies.size() < batch[i]->question.answers) {
      auto reply = link_->receive(until);
      if (!reply) return reply.error();
      answers[i].replies.push_back(std::move(*reply));
    }
    if (!waits || !batch[i]->question.durable) batch[i]->answer = std::move(answers[i]);
  }
  if (!waits) return {};
  auto acknowledged = link_->receive(until);
  if (!acknowledged) return acknowledged.error();
  const std::int64_t replicas =
      acknowledged->is(Reply::Kind::Integer) ? acknowledged->number : std::int64_t{0};
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (!batch[i]->question.durable) continue;
    answers[i].replicas = replicas;
    batch[i]->answer = std::move(answers[i]);
  }
  return {};
}

}  // namespace stint::store::redis
