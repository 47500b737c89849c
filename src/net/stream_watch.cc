#include "net/stream_watch.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "base/mutex.h"
#include "os/fd.h"
#include "os/pause.h"

namespace stint::net {
namespace {

constexpr Millis kBackAfter{500};

// Moves `past` beyond the last occurrence, if that is further.
bool found(const std::string& seen, const std::string& word, std::size_t& past) {
  const std::size_t at = seen.rfind(word);
  if (at == seen.npos) return false;
  past = std::max(past, at + word.size());
  return true;
}

class StreamWatch final : public Watch {
 public:
  StreamWatch(std::shared_ptr<HttpClient> http, HttpRequest request, StreamWords words,
              const Clock& clock)
      : http_(std::move(http)),
        request_(std::move(request)),
        words_(std::move(words)),
        clock_(clock),
        thread_([this] { run(); }) {}
  ~StreamWatch() override {
    stopping_ = true;
    over_.signal();
    {
      const MutexLock lock(mutex_);
      if (stream_) stream_->stop();
    }
    thread_.join();
  }
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

  // Empty: it stands.
  std::optional<HttpOutcome> begin() {
    os::wait_readable({begun_.fd()}, clock_.mono() + request_.timeout);
    const MutexLock lock(mutex_);
    if (stands_) return std::nullopt;
    if (refused_) return refused_;
    HttpOutcome late;
    late.failure =
        HttpFailure{HttpFailure::Kind::MaybeSent, false, true, "no answer within the time"};
    return late;
  }

  int fd() const override { return event_.fd(); }
  void acknowledge() override { event_.drain(); }

 private:
  HttpStream* next_stream() {
    auto made = http_->stream();
    const MutexLock lock(mutex_);
    stream_ = std::move(made);
    if (stopping_) stream_->stop();
    return stream_.get();
  }

  void run() {
    while (!stopping_) {
      HttpStream* stream = next_stream();
      std::string seen;
      HttpOutcome outcome = stream->run(request_, [&](std::string_view piece) {
        seen += piece;
        std::size_t past = 0;
        if (found(seen, words_.wakes, past)) event_.signal();
        if (found(seen, words_.begins, past)) stands();
        // A piece may end within a word.
        seen.erase(0, past);
        const std::size_t longest = std::max(words_.begins.size(), words_.wakes.size());
        if (seen.size() > longest) seen.erase(0, seen.size() - longest);
        return !stopping_.load();
      });
      if (stopping_) return;
      if (ended(std::move(outcome))) return;
      event_.signal();
      os::wait_readable({over_.fd()}, clock_.mono() + kBackAfter);
    }
  }

  // True: it never stood.
  bool ended(HttpOutcome outcome) {
    const MutexLock lock(mutex_);
    stream_.reset();
    if (stands_) return false;
    refused_ = std::move(outcome);
    begun_.signal();
    return true;
  }

  // Anew: what happened before is not known.
  void stands() {
    const MutexLock lock(mutex_);
    (std::exchange(stands_, true) ? event_ : begun_).signal();
  }

  const std::shared_ptr<HttpClient> http_;
  const HttpRequest request_;
  const StreamWords words_;
  const Clock& clock_;
  os::EventFd event_;
  os::EventFd begun_;
  os::EventFd over_;
  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  std::unique_ptr<HttpStream> stream_ GUARDED_BY(mutex_);
  bool stands_ GUARDED_BY(mutex_) = false;
  std::optional<HttpOutcome> refused_ GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all the others
};

}  // namespace

std::variant<std::unique_ptr<Watch>, HttpOutcome> open_stream_watch(
    const std::shared_ptr<HttpClient>& http, const HttpRequest& request, const StreamWords& words,
    const Clock& clock) {
  auto watch = std::make_unique<StreamWatch>(http, request, words, clock);
  if (auto refused = watch->begin()) return std::move(*refused);
  return std::unique_ptr<Watch>(std::move(watch));
}

}  // namespace stint::net
