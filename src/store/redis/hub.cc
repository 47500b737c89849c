#include "store/redis/hub.h"

#include <algorithm>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/thread.h"

namespace stint::store::redis {
namespace {

// Between two tries to connect; doubled up to the second.
constexpr Millis kFirstPause{20};
constexpr Millis kLongestPause{2000};
// The destructor waits for a try that is under way.
constexpr Millis kLongestTry{3000};

}  // namespace

class Hub::WakeUp final : public Watch {
 public:
  WakeUp(std::shared_ptr<Board> board, std::string channel)
      : board_(std::move(board)), channel_(std::move(channel)) {
    const MutexLock lock(board_->mutex);
    board_->channels[channel_].watchers.insert(&event_);
  }
  ~WakeUp() override { board_->leave(channel_, &event_); }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  int fd() const override { return event_.fd(); }
  void acknowledge() override { event_.drain(); }

 private:
  std::shared_ptr<Board> board_;
  const std::string channel_;
  os::EventFd event_;
};

void Hub::Board::leave(const std::string& channel, os::EventFd* event) {
  const MutexLock lock(mutex);
  const auto found = channels.find(channel);
  if (found == channels.end()) return;
  found->second.watchers.erase(event);
  if (found->second.watchers.empty()) work.signal();
}

void Hub::Board::wake(const std::string& channel) {
  const MutexLock lock(mutex);
  const auto found = channels.find(channel);
  if (found == channels.end()) return;
  for (os::EventFd* event : found->second.watchers) event->signal();
}

// All must look: they may have missed something, or the server is gone.
void Hub::Board::lost(const Error& why) {
  const MutexLock lock(mutex);
  trouble = why;
  for (auto at = channels.begin(); at != channels.end();) {
    at->second.asked = false;
    at->second.unconfirmed = 0;
    for (os::EventFd* event : at->second.watchers) event->signal();
    at = at->second.watchers.empty() ? channels.erase(at) : std::next(at);
  }
  changed.notify_all();
}

void Hub::Board::confirm(const std::string& channel) {
  const MutexLock lock(mutex);
  const auto found = channels.find(channel);
  if (found == channels.end()) return;
  Channel& which = found->second;
  which.unconfirmed = std::max(which.unconfirmed - 1, 0);
  if (!which.confirmed()) return;
  // Whoever registered before a lost connection has slept through what came in between.
  for (os::EventFd* event : which.watchers) event->signal();
  changed.notify_all();
}

std::string Hub::Board::due() {
  std::string out;
  const MutexLock lock(mutex);
  work.drain();
  for (auto at = channels.begin(); at != channels.end();) {
    Channel& channel = at->second;
    const bool wanted = !channel.watchers.empty();
    if (wanted && !channel.asked) {
      append_command(out, {"SUBSCRIBE", at->first});
      channel.asked = true;
      ++channel.unconfirmed;
    } else if (!wanted && channel.asked) {
      append_command(out, {"UNSUBSCRIBE", at->first});
      channel.asked = false;
    }
    at = !wanted && channel.unconfirmed == 0 ? channels.erase(at) : std::next(at);
  }
  return out;
}

Hub::Hub(Options options) : options_(std::move(options)), board_(std::make_shared<Board>()) {}

Hub::~Hub() {
  const MutexLock lock(start_mutex_);
  if (!thread_.joinable()) return;
  stop_.request_stop();
  board_->work.signal();
  thread_.join();
}

Result<std::unique_ptr<Watch>> Hub::watch(std::string_view key) {
  const std::string channel = options_.channel(key);
  {
    const MutexLock lock(start_mutex_);
    if (!thread_.joinable()) {
      auto started = os::start_thread("stint-hub", "watch the store",
                                      [this, stop = stop_.get_token()] { run(stop); });
      if (!started) return started.error();
      thread_ = std::move(*started);
    }
  }
  auto watch = std::make_unique<WakeUp>(board_, channel);
  const MonoTime until = os::system_clock().mono() + options_.timeout;
  std::optional<Error> trouble;
  bool ready = false;
  {
    MutexLock lock(board_->mutex);
    board_->work.signal();
    while (!(ready = board_->channels[channel].confirmed())) {
      const Nanos left = until - os::system_clock().mono();
      const bool denied = board_->trouble && board_->trouble->code == Code::Denied;
      if (left <= Nanos(0) || denied) break;
      board_->changed.wait_for(lock, left);
    }
    trouble = board_->trouble;
  }
  if (ready) {
    // The confirmation itself woke it: nothing has happened yet.
    watch->acknowledge();
    return std::unique_ptr<Watch>(std::move(watch));
  }
  if (trouble) return *trouble;
  return unavailable(cat("the Redis at ", options_.where(), " confirms no subscription in time"));
}

void Hub::run(const std::stop_token& stop) {
  Millis pause = kFirstPause;
  while (!stop.stop_requested()) {
    auto link =
        Link::open(options_, os::system_clock().mono() + std::min(options_.timeout, kLongestTry));
    if (link) {
      pause = kFirstPause;
      {
        const MutexLock lock(board_->mutex);
        board_->trouble.reset();
      }
      listen(**link, stop);
    }
    if (stop.stop_requested()) return;
    board_->lost(link ? unavailable(cat("the Redis at ", options_.where(), " hung up"))
                      : link.error());
    const MonoTime until = os::system_clock().mono() + pause;
    while (!stop.stop_requested() && os::system_clock().mono() < until) {
      os::wait_readable({board_->work.fd()}, until);
      board_->work.drain();
    }
    pause = std::min(pause * 2, kLongestPause);
  }
}

void Hub::listen(Link& link, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (!send_due(link)) return;
    // The wish to stop comes before its signal: if send_due() took the signal, the wish is there.
    if (stop.stop_requested()) return;
    if (!link.pending()) {
      const auto ready = os::wait_readable({link.fd(), board_->work.fd()}, std::nullopt);
      if (!ready[0]) continue;
    }
    if (!take_message(link)) return;
  }
}

bool Hub::send_due(Link& link) {
  const std::string commands = board_->due();
  if (commands.empty()) return true;
  bool sent = false;
  return link.send(commands, os::system_clock().mono() + options_.timeout, sent).has_value();
}

// {"message", channel, text}, {"subscribe", channel, count} or {"unsubscribe", channel, count}
bool Hub::take_message(Link& link) {
  const auto reply = link.receive(os::system_clock().mono() + options_.timeout);
  if (!reply) return false;
  if (!reply->is(Reply::Kind::Array) || reply->items.size() != 3) return false;
  const std::string& what = reply->items[0].text;
  if (what == "message") board_->wake(reply->items[1].text);
  if (what == "subscribe") board_->confirm(reply->items[1].text);
  return true;
}

}  // namespace stint::store::redis
