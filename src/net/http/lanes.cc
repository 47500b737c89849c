#include "net/http/lanes.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <condition_variable>
#include <thread>
#include <unordered_map>

#include "base/check.h"
#include "base/mutex.h"
#include "net/http/wire.h"
#include "os/fd.h"
#include "os/thread.h"

namespace stint::net::http {
namespace {

constexpr std::size_t kMostInATurn = 128;
constexpr Millis kLaneSweep{500};

// Whether these bytes are exactly one request of the plain kind: its head and its body.
std::optional<RequestHead> whole_request(std::string_view bytes, std::string_view& body) {
  const auto end = find_head_end(bytes);
  if (!end || *end == 0) return std::nullopt;
  auto head = parse_request(bytes.substr(0, *end));
  if (!head || head->http10) return std::nullopt;
  const auto framing = framing_of(*head);
  body = bytes.substr(*end);
  const bool plain = framing && framing->kind == Framing::Kind::Length &&
                     framing->length == body.size() && head->fields.count("Expect") == 0 &&
                     keeps_alive(head->fields, false);
  if (!plain) return std::nullopt;
  return std::move(*head);
}

}  // namespace

struct LaneClient {
  os::Fd fd;
  std::string peer;
  MonoTime until{};
  unsigned returned = 0;
  // The sender's, until it is drained.
  bool gone = false;
  std::string unsent = {};
};

// Answers, one after another in one piece of memory.
struct Outbox {
  struct Piece {
    LaneClient* client;
    std::size_t size;
  };
  std::string bytes;
  std::vector<Piece> pieces;
  void clear() {
    bytes.clear();
    pieces.clear();
  }
};

// Sends what a lane has answered, while the lane goes on: nearly a third of a request's time is the
// kernel's, for sending. Few answers are sent by the lane itself, at once: waking another costs
// more.
class LaneSender {
 public:
  LaneSender() = default;
  ~LaneSender() {
    if (!thread_.joinable()) return;
    {
      const MutexLock lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  LaneSender(const LaneSender&) = delete;
  LaneSender& operator=(const LaneSender&) = delete;

  // Once, before all else.
  Status open() {
    auto thread = os::start_thread("stint-send", "send answers", [this] { run(); });
    if (!thread) return thread.error();
    thread_ = std::move(*thread);
    return {};
  }

  // Empties the box.
  void send(Outbox& box) {
    constexpr std::size_t kFew = 4;
    {
      const MutexLock lock(mutex_);
      if (busy_ || box.pieces.size() > kFew) {
        line_.push_back(std::move(box));
        box = spare_.empty() ? Outbox() : std::move(spare_.back());
        if (!spare_.empty()) spare_.pop_back();
        if (!std::exchange(busy_, true)) changed_.notify_all();
        return;
      }
    }
    if (send_all(box)) stuck_ = true;
    box.clear();
  }

  // Whether some client did not take all of its answers, or is gone. Not yet: it may be found
  // later.
  bool stuck() const { return stuck_; }
  // Waits until all is sent that can be.
  void drain() {
    MutexLock lock(mutex_);
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return !busy_; });
  }
  // By who looks at all clients now. REQUIRES: drained, and nothing sent since.
  void forget_stuck() { stuck_ = false; }

 private:
  // True: somebody did not take it.
  static bool send_all(const Outbox& box) {
    bool stuck = false;
    std::string_view rest = box.bytes;
    for (const auto& [client, size] : box.pieces) {
      send_one(*client, rest.substr(0, size));
      rest.remove_prefix(size);
      stuck |= client->gone || !client->unsent.empty();
    }
    return stuck;
  }

  static void send_one(LaneClient& client, std::string_view text) {
    if (client.gone) return;
    std::size_t taken = 0;
    if (client.unsent.empty()) {
      const ssize_t sent =
          ::send(client.fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      client.gone = sent < 0 && errno != EAGAIN && errno != EINTR;
      taken = sent < 0 ? 0 : static_cast<std::size_t>(sent);
    }
    if (!client.gone && taken < text.size()) client.unsent += text.substr(taken);
  }

  void run() {
    MutexLock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this]() REQUIRES(mutex_) { return busy_ || ending_; });
      if (!busy_) return;
      std::vector<Outbox> line;
      line.swap(line_);
      mutex_.unlock();
      for (Outbox& box : line) {
        if (send_all(box)) stuck_ = true;
        box.clear();
      }
      mutex_.lock();
      for (Outbox& box : line) spare_.push_back(std::move(box));
      busy_ = !line_.empty();
      if (!busy_) changed_.notify_all();
    }
  }

  std::atomic<bool> stuck_ = false;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Outbox> line_ GUARDED_BY(mutex_);
  std::vector<Outbox> spare_ GUARDED_BY(mutex_);
  bool busy_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last: it uses all of them
};

class LaneCall final : public ShortCall {
 public:
  LaneCall(LaneClient& client, Outbox& out, std::string_view bytes, RequestHead head,
           std::string_view body)
      : client_(client), out_(out), bytes_(bytes), head_(std::move(head)), body_(body) {}

  const RequestHead& head() const override { return head_; }
  std::string_view body() const override { return body_; }
  std::string peer() const override { return client_.peer; }

  void answer(Answer answer) override {
    CHECK(!answered_ && !answer.sent, "a request is answered once, and then it is the sender's");
    answered_ = true;
    const std::size_t before = out_.bytes.size();
    append_head(out_.bytes, answer, true);
    out_.bytes += answer.body;
    out_.pieces.push_back({&client_, out_.bytes.size() - before});
  }

  // What only the loop can do is not asked of a lane.
  void forward(Forward /*forward*/) override { CHECK(false, "a lane forwards nothing"); }
  void collect(std::size_t /*most*/, std::function<void(std::string)> /*then*/) override {
    CHECK(false, "the body is there");
  }
  std::shared_ptr<Feed> stream(Answer /*head*/) override {
    CHECK(false, "a lane's answers end");
    return nullptr;
  }
  void on_gone(std::function<void()> /*then*/) override { CHECK(false, "a lane waits for nobody"); }
  void cut() override { CHECK(false, "a lane cuts nobody"); }

  LaneClient& client() const { return client_; }
  bool answered() const { return answered_; }
  std::string_view bytes() const { return bytes_; }

 private:
  LaneClient& client_;
  Outbox& out_;
  const std::string_view bytes_;
  const RequestHead head_;
  const std::string_view body_;
  bool answered_ = false;
};

class Lane final : private Turn {
 public:
  Lane(Millis idle_time, TurnHandler& turns, const Clock& clock, std::function<void(Moved)> back)
      : idle_time_(idle_time), turns_(turns), clock_(clock), back_(std::move(back)) {}
  ~Lane() override { stop(); }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Status open() {
    poll_ = os::Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!poll_) return unavailable(os::errno_text("making a lane of the server"));
    auto call = os::EventFd::make();
    if (!call) return call.error();
    call_.emplace(std::move(*call));
    if (!watch(call_->fd(), nullptr)) {
      return unavailable(os::errno_text("making a lane of the server"));
    }
    if (auto sender = sender_.open(); !sender) return sender;
    auto thread = os::start_thread("stint-lane", "serve short requests", [this] { run(); });
    if (!thread) return thread.error();
    thread_ = std::move(*thread);
    return {};
  }

  void take(Moved connection) {
    auto client = std::make_unique<LaneClient>(
        LaneClient{std::move(connection.fd), std::move(connection.peer), clock_.mono() + idle_time_,
                   connection.returned});
    LaneClient* const place = client.get();
    const MutexLock lock(mutex_);
    if (closed_) return;
    clients_.emplace(place, std::move(client));
    // Once it is watched, it is the thread's.
    if (!watch(place->fd.get(), place)) clients_.erase(place);
  }

  std::size_t connections() const {
    const MutexLock lock(mutex_);
    return clients_.size();
  }

  void stop() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    call_->signal();
    thread_.join();
    look_at_stuck();
    const MutexLock lock(mutex_);
    closed_ = true;
    clients_.clear();
  }

 private:
  // Edges: what was read at once was all, as far as the next edge.
  bool watch(int fd, LaneClient* client) const {
    epoll_event wanted{};
    wanted.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    wanted.data.ptr = client;
    return ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &wanted) == 0;
  }

  void run() {
    std::array<epoll_event, kMostInATurn> ready{};
    while (!stopping_) {
      const MonoTime begun = clock_.mono();
      const int count = ::epoll_wait(poll_.get(), ready.data(), static_cast<int>(ready.size()),
                                     static_cast<int>(kLaneSweep.count()));
      for (int i = 0; i < count; ++i) {
        const epoll_event& event = ready[static_cast<std::size_t>(i)];
        if (event.data.ptr != nullptr)
          read(*static_cast<LaneClient*>(event.data.ptr), event.events);
      }
      if (!calls_.empty()) turn();
      if (sender_.stuck()) look_at_stuck();
      // Idle is who was so when this pass began and was not found ready in it. What came while a
      // turn took its time is read in the next one.
      const bool all_read = count < static_cast<int>(ready.size());
      if (all_read && begun - swept_ >= kLaneSweep) sweep(begun);
    }
  }

  // Each piece of the buffer is one connection's, until the turn ends.
  void read(LaneClient& client, unsigned events) {
    char* const place = buffer_.data() + calls_.size() * kMostRequest;
    const ssize_t got = ::recv(client.fd.get(), place, kMostRequest, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR) && (events & ~unsigned{EPOLLIN}) == 0) {
      return;
    }
    const std::string_view bytes(place, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    std::string_view body;
    // A full piece may not be all that is there, and no edge would tell of the rest.
    const bool plain = got > 0 && static_cast<std::size_t>(got) < kMostRequest &&
                       (events & ~unsigned{EPOLLIN}) == 0;
    auto head = plain ? whole_request(bytes, body) : std::nullopt;
    if (!head) {
      sender_.drain();
      return give_back(client, {.fd = {}, .unread = std::string(bytes), .unsent = client.unsent});
    }
    own_.push_back(std::make_shared<LaneCall>(client, out_, bytes, std::move(*head), body));
    calls_.push_back(own_.back());
  }

  void turn() {
    turns_.turn(*this);
    send();
    calls_.clear();
    const MonoTime until = clock_.mono() + idle_time_;
    for (const auto& call : own_) {
      call->client().until = until;
      if (call->answered()) continue;
      // An answer before this one may still be on its way.
      sender_.drain();
      give_back(call->client(),
                {.fd = {}, .unread = std::string(call->bytes()), .unsent = call->client().unsent});
    }
    own_.clear();
  }

  const std::vector<std::shared_ptr<ShortCall>>& calls() const override { return calls_; }
  void send() override {
    if (!out_.pieces.empty()) sender_.send(out_);
  }

  // Who does not take its answers is the loop's: it has the patience, and an end to it.
  void look_at_stuck() {
    sender_.drain();
    sender_.forget_stuck();
    std::vector<LaneClient*> stuck;
    {
      const MutexLock lock(mutex_);
      std::erase_if(clients_, [](const auto& one) { return one.second->gone; });
      for (const auto& [place, client] : clients_) {
        if (!client->unsent.empty()) stuck.push_back(place);
      }
    }
    for (LaneClient* client : stuck) give_back(*client, {.fd = {}, .unsent = client->unsent});
  }

  // To the loop, with what was read. An end that came along is found there, too.
  void give_back(LaneClient& client, Moved moved) {
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, client.fd.get(), nullptr);
    moved.fd = std::move(client.fd);
    moved.peer = std::move(client.peer);
    moved.returned = client.returned + 1;
    {
      const MutexLock lock(mutex_);
      clients_.erase(&client);
    }
    back_(std::move(moved));
  }

  void sweep(MonoTime now) {
    swept_ = now;
    sender_.drain();  // what it sends to stays
    const MutexLock lock(mutex_);
    std::erase_if(clients_, [now](const auto& one) { return one.second->until <= now; });
  }

  const Millis idle_time_;
  TurnHandler& turns_;
  const Clock& clock_;
  const std::function<void(Moved)> back_;
  os::Fd poll_;
  std::optional<os::EventFd> call_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;

  // The thread's own. Of the buffer only what is read is ever touched.
  std::vector<char> buffer_ = std::vector<char>(kMostRequest * kMostInATurn);
  std::vector<std::shared_ptr<LaneCall>> own_;
  std::vector<std::shared_ptr<ShortCall>> calls_;  // the same
  Outbox out_;
  MonoTime swept_{};

  mutable Mutex mutex_;
  std::unordered_map<LaneClient*, std::unique_ptr<LaneClient>> clients_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
  LaneSender sender_;
};

Result<std::unique_ptr<Lanes>> Lanes::open(std::size_t count, Millis idle_time, TurnHandler& turns,
                                           const Clock& clock,
                                           const std::function<void(Moved)>& back) {
  std::unique_ptr<Lanes> out(new Lanes());
  for (std::size_t i = 0; i < count; ++i) {
    auto lane = std::make_unique<Lane>(idle_time, turns, clock, back);
    if (auto opened = lane->open(); !opened) return opened.error();
    out->lanes_.push_back(std::move(lane));
  }
  return out;
}

Lanes::~Lanes() = default;

void Lanes::take(Moved connection) {
  lanes_[next_.fetch_add(1) % lanes_.size()]->take(std::move(connection));
}

std::size_t Lanes::connections() const {
  std::size_t out = 0;
  for (const auto& lane : lanes_) out += lane->connections();
  return out;
}

void Lanes::stop() {
  for (const auto& lane : lanes_) lane->stop();
}

}  // namespace stint::net::http
