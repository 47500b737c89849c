#include "net/http/lanes.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <thread>
#include <unordered_map>

#include "base/check.h"
#include "base/mutex.h"
#include "net/http/lane_client.h"
#include "net/http/wire.h"
#include "os/fd.h"
#include "os/thread.h"

namespace stint::net::http {
namespace {

constexpr std::size_t kMostInAPass = 128;
constexpr Millis kLaneSweep{500};
// A sync that is over so soon is not worth a second thread at the door: it would take more of the
// processors' time than it saves anybody's.
constexpr std::chrono::microseconds kQuickSync{500};

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

// What was read and is not answered yet, and the answers that are not sent.
struct LaneTurn {
  explicit LaneTurn(std::unique_ptr<Sitting> own) : sitting(std::move(own)) {}
  std::unique_ptr<Sitting> sitting;
  std::size_t waiting = 0;  // for their answer
  std::size_t fresh = 0;    // of these, since the last look
  Outbox out;
  std::atomic<bool>* at_disk = nullptr;  // of the turn that is served: whether it waits
};

class LaneCall final : public ShortCall {
 public:
  LaneCall(LaneClient& client, LaneTurn& turn, RequestHead head, std::string body)
      : client_(client), turn_(turn), head_(std::move(head)), body_(std::move(body)) {}

  const RequestHead& head() const override { return head_; }
  std::string_view body() const override { return body_; }
  std::string peer() const override { return client_.peer; }

  void answer(Answer answer) override {
    CHECK(!answered_ && !answer.sent, "a request is answered once, and then it is the sender's");
    answered_ = true;
    --turn_.waiting;
    if (turn_.at_disk != nullptr) *turn_.at_disk = false;
    Outbox& out = turn_.out;
    const std::size_t before = out.bytes.size();
    append_head(out.bytes, answer, true);
    out.bytes += answer.body;
    out.pieces.push_back({&client_, out.bytes.size() - before});
  }

  // What only the loop can do is not asked of a lane.
  void forward(Forward /*forward*/) override { CHECK(false, "a lane forwards nothing"); }
  void gather(std::function<void()> /*then*/) override { CHECK(false, "a lane forwards nothing"); }
  void collect(std::size_t /*most*/, std::function<void(std::string)> /*then*/) override {
    CHECK(false, "the body is there");
  }
  std::shared_ptr<Feed> stream(Answer /*head*/) override {
    CHECK(false, "a lane's answers end");
    return nullptr;
  }
  void on_gone(std::function<void()> /*then*/) override { CHECK(false, "a lane waits for nobody"); }
  void cut() override { CHECK(false, "a lane cuts nobody"); }

 private:
  LaneClient& client_;
  LaneTurn& turn_;
  const RequestHead head_;
  const std::string body_;
  bool answered_ = false;
};

class Lane final {
 public:
  Lane(Millis idle_time, TurnHandler& turns, const Clock& clock, std::function<void(Moved)> back)
      : idle_time_(idle_time), turns_(turns), clock_(clock), back_(std::move(back)) {}
  ~Lane() { stop(); }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Status open() {
    poll_ = os::Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!poll_) return unavailable(os::errno_text("making a lane of the server"));
    for (std::optional<os::EventFd>* const one : {&call_, &help_}) {
      auto made = os::EventFd::make();
      if (!made) return made.error();
      one->emplace(std::move(*made));
    }
    auto alarm = os::AlarmFd::make();
    if (!alarm) return alarm.error();
    alarm_.emplace(std::move(*alarm));
    if (!watch(call_->fd(), nullptr)) {
      return unavailable(os::errno_text("making a lane of the server"));
    }
    {
      const MutexLock door(door_);
      gathered_ = std::make_unique<LaneTurn>(turns_.sit());
    }
    auto helper = os::start_thread("stint-lane-help", "serve short requests", [this] { help(); });
    if (!helper) return helper.error();
    helper_ = std::move(*helper);
    auto thread = os::start_thread("stint-lane", "serve short requests", [this] { run(); });
    if (!thread) return thread.error();
    thread_ = std::move(*thread);
    return {};
  }

  void take(Moved connection) {
    auto client = std::make_unique<LaneClient>(std::move(connection.fd), std::move(connection.peer),
                                               clock_.mono() + idle_time_, connection.returned);
    LaneClient* const place = client.get();
    const MutexLock lock(mutex_);
    if (closed_) return;
    clients_.emplace(place, std::move(client));
    // Once it is watched, it is the threads'.
    if (!watch(place->fd.get(), place)) clients_.erase(place);
  }

  std::size_t connections() const {
    const MutexLock lock(mutex_);
    return clients_.size();
  }

  void stop() {
    stopping_ = true;
    if (call_) call_->signal();
    if (thread_.joinable()) thread_.join();
    // Nothing is handed to the helper any more.
    ended_ = true;
    if (help_) help_->signal();
    if (helper_.joinable()) helper_.join();
    for (LaneClient* client : asking()) {
      if (!client->gone) give_back(*client, {.fd = {}, .unsent = client->unsent});
    }
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

  // ---- at the door
  // Reads those that have something. True: that was all of them.
  bool pass(std::size_t most, Millis patience) REQUIRES(door_) {
    std::array<epoll_event, kMostInAPass> ready{};
    const int count = ::epoll_wait(poll_.get(), ready.data(), static_cast<int>(most),
                                   static_cast<int>(patience.count()));
    for (int i = 0; i < count && !stopping_; ++i) {
      const epoll_event& event = ready[static_cast<std::size_t>(i)];
      auto* const client = static_cast<LaneClient*>(event.data.ptr);
      if (client != nullptr && client->is_free_or_notes(event.events)) read(*client, event.events);
    }
    if (asks_) attend();
    return count < static_cast<int>(most);
  }

  void read(LaneClient& client, unsigned events) REQUIRES(door_) {
    LaneTurn& turn = *gathered_;
    const ssize_t got = ::recv(client.fd.get(), piece_.data(), piece_.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR) && (events & ~unsigned{EPOLLIN}) == 0) {
      return;
    }
    const std::string_view bytes(piece_.data(),
                                 static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    std::string_view body;
    // A full piece may not be all that is there, and no edge would tell of the rest.
    const bool plain = got > 0 && static_cast<std::size_t>(got) < kMostRequest &&
                       (events & ~unsigned{EPOLLIN}) == 0;
    auto head = plain ? whole_request(bytes, body) : std::nullopt;
    const bool taken = head && turn.sitting->take(std::make_shared<LaneCall>(
                                   client, turn, std::move(*head), std::string(body)));
    if (!taken) return give_back(client, {.fd = {}, .unread = std::string(bytes)});
    client.is_served();
    ++turn.waiting;
    ++turn.fresh;
  }

  // Those that a turn could not let go. Who does not take its answers is the loop's: it has the
  // patience, and an end to it.
  void attend() REQUIRES(door_) {
    for (LaneClient* client : asking()) {
      if (client->gone) {
        const MutexLock lock(mutex_);
        clients_.erase(client);
      } else if (!client->unsent.empty()) {
        give_back(*client, {.fd = {}, .unsent = client->unsent});
      } else {
        const std::uint32_t events = client->take_back();
        if (!stopping_) read(*client, events);
      }
    }
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

  void sweep(MonoTime now) REQUIRES(door_) {
    swept_ = now;
    const MutexLock lock(mutex_);
    std::erase_if(clients_, [now](const auto& one) {
      return one.second->is_free() && one.second->until <= now;
    });
  }

  // ---- the thread that serves
  void run() {
    auto turn = std::make_unique<LaneTurn>(turns_.sit());
    while (true) {
      {
        const MutexLock door(door_);
        if (!gather()) return;
        turn.swap(gathered_);
      }
      serve(*turn);
    }
  }

  // True: something is to be served. False: the lane is stopped, and nothing is.
  bool gather() REQUIRES(door_) {
    // What the helper has read meanwhile goes together with what is there now.
    while (true) {
      const bool some = gathered_->waiting > 0;
      if (stopping_) return some;
      const MonoTime begun = clock_.mono();
      const bool all = pass(kMostInAPass, some ? Millis(0) : kLaneSweep);
      // Idle is who was so when this pass began and was not found ready in it. What came while a
      // turn took its time is read in the next one.
      if (all && begun - swept_ >= kLaneSweep) sweep(begun);
      if (gathered_->waiting > 0) return true;
    }
  }

  void serve(LaneTurn& turn) {
    turn.at_disk = &at_disk_;
    turn.sitting->serve([&] {
      at_disk_ = true;  // before the alarm, which is told once
      alarm_->set(kQuickSync);
      if (!hand_over(turn.out)) send(turn.out);
    });
    turn.at_disk = nullptr;
    at_disk_ = false;
    alarm_->stop();
    CHECK(turn.waiting == 0, "a sitting answers all that it has taken");
    turn.fresh = 0;
    if (!hand_over(turn.out)) send(turn.out);
  }

  // Nearly a third of a request's time is the kernel's, for sending: the helper does that, while
  // this thread goes on. Few answers are sent at once: waking another takes longer.
  bool hand_over(Outbox& box) {
    constexpr std::size_t kFew = 4;
    if (box.pieces.size() <= kFew) return false;
    {
      const MutexLock lock(mutex_);
      line_.push_back(std::move(box));
      box = spare_.empty() ? Outbox() : std::move(spare_.back());
      if (!spare_.empty()) spare_.pop_back();
      if (std::exchange(sending_, true)) return true;
    }
    help_->signal();
    return true;
  }

  // ---- the helper
  void help() {
    bool at_door = false;
    while (true) {
      std::array<pollfd, 3> wanted{{{.fd = help_->fd(), .events = POLLIN, .revents = 0},
                                    {.fd = alarm_->fd(), .events = POLLIN, .revents = 0},
                                    {.fd = poll_.get(), .events = POLLIN, .revents = 0}}};
      ::poll(wanted.data(), at_door ? 3 : 2, -1);
      if ((wanted[0].revents & POLLIN) != 0) help_->drain();
      if ((wanted[1].revents & POLLIN) != 0) {
        alarm_->drain();
        at_door = true;
      }
      const bool ended = ended_;  // before it is looked whether something is left
      send_line();
      at_door = at_door && at_disk_ && !stopping_;
      if (at_door) look_at_door();
      if (ended) return;
    }
  }

  void send_line() {
    std::vector<Outbox> line;
    while (true) {
      {
        const MutexLock lock(mutex_);
        // Their memory is for the next ones.
        for (Outbox& box : line) spare_.push_back(std::move(box));
        line.clear();
        line.swap(line_);
        sending_ = !line.empty();
        if (line.empty()) return;
      }
      for (Outbox& box : line) send(box);
    }
  }

  // A turn waits for the disk: who needs none does not wait with it.
  void look_at_door() {
    // Never waited for: who has it reads by itself, and perhaps waits there for what is in line_.
    if (!door_.try_lock()) return;
    Outbox refused;
    if (at_disk_ && !stopping_) refused = refuse_some();
    door_.unlock();
    send(refused);
  }

  Outbox refuse_some() REQUIRES(door_) {
    constexpr std::size_t kMost = 16;  // the other thread may want to be at the door again
    pass(kMost, Millis(0));
    LaneTurn& turn = *gathered_;
    if (turn.fresh == 0) return {};
    turn.fresh = 0;
    turn.sitting->look();
    return std::exchange(turn.out, {});
  }

  // ---- both
  // Empties the box.
  void send(Outbox& box) {
    if (box.pieces.empty()) return;
    const MonoTime until = clock_.mono() + idle_time_;
    std::string_view rest = box.bytes;
    for (const auto& [client, size] : box.pieces) {
      client->send(rest.substr(0, size));
      rest.remove_prefix(size);
      if (client->let_go(until)) continue;
      {
        const MutexLock lock(mutex_);
        asking_.push_back(client);
      }
      asks_ = true;
      call_->signal();
    }
    box.clear();
  }

  std::vector<LaneClient*> asking() {
    std::vector<LaneClient*> out;
    const MutexLock lock(mutex_);
    asks_ = false;
    out.swap(asking_);
    return out;
  }

  const Millis idle_time_;
  TurnHandler& turns_;
  const Clock& clock_;
  const std::function<void(Moved)> back_;
  os::Fd poll_;
  std::optional<os::EventFd> call_;   // whoever is at the door
  std::optional<os::EventFd> help_;   // the helper
  std::optional<os::AlarmFd> alarm_;  // the helper: the disk is slow
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> ended_ = false;    // nothing is served any more
  std::atomic<bool> at_disk_ = false;  // a turn waits for it, or may do so
  std::atomic<bool> asks_ = false;     // asking_ is not empty

  // Who holds it stands at the door: reads, and ends connections.
  Mutex door_;
  std::unique_ptr<LaneTurn> gathered_ GUARDED_BY(door_);  // the next turn
  std::array<char, kMostRequest> piece_ GUARDED_BY(door_);
  MonoTime swept_ GUARDED_BY(door_){};

  mutable Mutex mutex_;
  std::unordered_map<LaneClient*, std::unique_ptr<LaneClient>> clients_ GUARDED_BY(mutex_);
  std::vector<LaneClient*> asking_ GUARDED_BY(mutex_);
  std::vector<Outbox> line_ GUARDED_BY(mutex_);
  std::vector<Outbox> spare_ GUARDED_BY(mutex_);
  bool sending_ GUARDED_BY(mutex_) = false;  // the helper looks at line_ again before it sleeps
  bool closed_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last: they use all of them
  std::thread helper_;
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
