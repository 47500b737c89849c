#include "store/redis/pipeline.h"

#include <algorithm>

#include "base/text.h"
#include "os/clock.h"
#include "os/futex.h"

namespace stint::store::redis {
namespace {

constexpr std::size_t kMostTogether = 256;
constexpr std::size_t kMostBytes = 1U << 20U;
// From so many on a second lane pays: it is a connection more, and smaller batches.
constexpr std::size_t kManyWaiting = 8;

}  // namespace

Pipeline::Pipeline(const Options& options, Connect connect)
    : options_(options), connect_(std::move(connect)) {}

void Pipeline::forget_link() {
  const MutexLock lock(mutex_);
  forget_.fill(true);
}

std::optional<std::size_t> Pipeline::free_lane() const {
  if (!led_[0]) return 0;
  if (line_.size() < kManyWaiting) return std::nullopt;
  for (std::size_t lane = 1; lane < kLanes; ++lane) {
    if (!led_[lane]) return lane;
  }
  return std::nullopt;
}

Result<Answer> Pipeline::ask(const Question& question, MonoTime until) {
  Task own{question, until};
  bool leads = false;
  {
    const MutexLock lock(mutex_);
    if (const auto lane = free_lane()) {
      leads = led_[*lane] = true;
      own.lane = *lane;
    } else {
      line_.push_back(&own);
    }
  }
  if (leads || wait(own)) lead(own);
  return std::move(*own.answer);
}

bool Pipeline::wait(Task& own) {
  while (true) {
    const std::uint32_t state = own.state;
    if (state != Task::kWaiting) return state == Task::kLeads;
    const Nanos left = own.until - os::system_clock().mono();
    if (left > Nanos(0)) {
      os::futex_wait_for(own.state, Task::kWaiting, left);
      continue;
    }
    {
      const MutexLock lock(mutex_);
      const auto waiting = std::ranges::find(line_, &own);
      if (waiting != line_.end()) {
        line_.erase(waiting);
        own.answer = not_in_time();
        return false;
      }
    }
    // It is on its way, and its own deadline ends the leader's wait.
    os::futex_wait(own.state, Task::kWaiting);
  }
}

void Pipeline::wake(Task& task, Task::State state) {
  const auto& word = task.state;
  task.state = state;
  os::futex_wake_one(word);
}

// A lane beside the first goes on only where many wait; the first one takes whoever there is.
void Pipeline::hand_over(std::size_t lane) {
  Task* next = nullptr;
  {
    const MutexLock lock(mutex_);
    led_[lane] = line_.size() >= (lane == 0 ? 1 : kManyWaiting);
    if (!led_[lane]) return;
    // Out of the line: a leader is nobody's to take.
    next = line_.front();
    line_.pop_front();
  }
  next->lane = lane;
  wake(*next, Task::kLeads);
}

bool Pipeline::too_late(const Task& task) const {
  return task.until - os::system_clock().mono() < options_.timeout / 8;
}

Error Pipeline::not_in_time() const {
  return unavailable(cat("the Redis at ", options_.where(), " does not answer in time"));
}

std::vector<Pipeline::Task*> Pipeline::take(const Task& own) {
  std::vector<Task*> batch;
  std::vector<Task*> late;
  std::size_t bytes = own.question.bytes.size();
  {
    const MutexLock lock(mutex_);
    while (!line_.empty() && batch.size() < kMostTogether && bytes < kMostBytes) {
      Task* const next = line_.front();
      line_.pop_front();
      if (too_late(*next)) {
        late.push_back(next);
        continue;
      }
      bytes += next->question.bytes.size();
      batch.push_back(next);
    }
  }
  for (Task* task : late) {
    task->answer = not_in_time();
    wake(*task, Task::kDone);
  }
  return batch;
}

Status Pipeline::ensure_link(std::size_t lane, MonoTime until) {
  std::unique_ptr<Link>& link = links_[lane];
  {
    const MutexLock lock(mutex_);
    if (std::exchange(forget_[lane], false)) link.reset();
  }
  // A connection that the server closed while it was idle must not make a commit unknown.
  if (link && link->quiet()) return {};
  link.reset();
  auto made = connect_(until);
  if (!made) return made.error();
  link = std::move(*made);
  return {};
}

// The lane goes on before those who travelled are woken: the server need not wait for that.
void Pipeline::lead(Task& own) {
  std::vector<Task*> batch;
  if (too_late(own)) {
    own.answer = not_in_time();
  } else if (auto ok = ensure_link(own.lane, own.until); !ok) {
    own.answer = ok.error();
  } else {
    batch = take(own);
    batch.insert(batch.begin(), &own);
    const auto first =
        std::ranges::min_element(batch, {}, [](const Task* task) { return task->until; });
    exchange(links_[own.lane], batch, (*first)->until);
  }
  hand_over(own.lane);
  for (Task* task : batch) {
    if (task != &own) wake(*task, Task::kDone);
  }
}

Error Pipeline::lost(const Task& task, const Error& why) const {
  if (!task.question.changes) {
    return unavailable(cat("the Redis at ", options_.where(), ": ", why.message));
  }
  return {Code::UnknownOutcome, cat("sent to the Redis at ", options_.where(),
                                    ", but no answer came (", why.message, ")")};
}

void Pipeline::exchange(std::unique_ptr<Link>& link, const std::vector<Task*>& batch,
                        MonoTime until) {
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
  Status went = link->send(bytes, until, sent);
  if (went) went = receive_all(*link, batch, waits, until);
  if (went) return;
  link.reset();
  for (Task* task : batch) {
    if (task->answer) continue;
    task->answer =
        sent ? lost(*task, went.error())
             : unavailable(cat("the Redis at ", options_.where(), ": ", went.error().message));
  }
}

// A task has its answer only when all that belongs to it is there.
Status Pipeline::receive_all(Link& link, const std::vector<Task*>& batch, bool waits,
                             MonoTime until) {
  std::vector<Answer> answers(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    while (answers[i].replies.size() < batch[i]->question.answers) {
      auto reply = link.receive(until);
      if (!reply) return reply.error();
      answers[i].replies.push_back(std::move(*reply));
    }
    if (!waits || !batch[i]->question.durable) batch[i]->answer = std::move(answers[i]);
  }
  if (!waits) return {};
  auto acknowledged = link.receive(until);
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
