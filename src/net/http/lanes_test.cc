#include "net/http/lanes.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "base/mutex.h"
#include "base/text.h"
#include "os/clock.h"

namespace stint::net::http {
namespace {

constexpr Millis kPatience{30'000};

// What the loop would have got.
class Back {
 public:
  void put(Moved moved) {
    const MutexLock lock(mutex_);
    all_.push_back(std::move(moved));
    changed_.notify_all();
  }
  Moved wait() {
    MutexLock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, kPatience, [this]() REQUIRES(mutex_) { return !all_.empty(); });
    EXPECT_TRUE(came) << "nothing came back from the lane";
    if (!came) return {};
    Moved out = std::move(all_.front());
    all_.erase(all_.begin());
    return out;
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Moved> all_ GUARDED_BY(mutex_);
};

using Calls = std::vector<std::shared_ptr<ShortCall>>;
using Pause = Sitting::Pause;

// What the handler of a test does.
struct How {
  std::function<void(Calls&, const Pause&)> serve;  // answers all that is left
  std::function<bool(const ShortCall&)> takes = [](const ShortCall& /*call*/) { return true; };
  std::function<bool(ShortCall&)> looks = [](ShortCall& /*call*/) { return false; };  // answered
};

class Answers final : public TurnHandler {
 public:
  explicit Answers(How how) : how_(std::move(how)) {}
  std::unique_ptr<Sitting> sit() override { return std::make_unique<Seat>(how_); }

 private:
  class Seat final : public Sitting {
   public:
    explicit Seat(const How& how) : how_(how) {}
    bool take(const std::shared_ptr<ShortCall>& call) override {
      if (!how_.takes(*call)) return false;
      calls_.push_back(call);
      return true;
    }
    void look() override {
      std::erase_if(calls_, [this](const auto& call) { return how_.looks(*call); });
    }
    void serve(const Pause& pause) override {
      how_.serve(calls_, pause);
      calls_.clear();
    }

   private:
    const How& how_;
    Calls calls_;
  };
  const How how_;
};

void answer_all(const Calls& calls, const std::string& body) {
  for (const auto& call : calls) call->answer({.status = 200, .body = body});
}
How answering(const std::string& body) {
  return {.serve = [body](Calls& calls, const Pause& /*pause*/) { answer_all(calls, body); }};
}

class LanesTest : public ::testing::Test {
 protected:
  void open(How how) {
    handler_.emplace(std::move(how));
    auto lanes = Lanes::open(1, Millis(60'000), *handler_, clock_,
                             [this](Moved moved) { back_.put(std::move(moved)); });
    ASSERT_TRUE(lanes) << lanes.error().message;
    lanes_ = std::move(*lanes);
  }
  // The client's end; the other one is the lane's.
  os::Fd join() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    lanes_->take({.fd = os::Fd(ends[1]), .peer = "peer"});
    return os::Fd(ends[0]);
  }
  static void say(const os::Fd& client, std::string_view text) {
    EXPECT_EQ(::write(client.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // So many bytes, or what came until the patience ended.
  static std::string hear(const os::Fd& client, std::size_t bytes) {
    std::string out;
    while (out.size() < bytes) {
      pollfd wanted{.fd = client.get(), .events = POLLIN, .revents = 0};
      if (::poll(&wanted, 1, static_cast<int>(kPatience.count())) <= 0) break;
      char piece[4096];
      const ssize_t got = ::read(client.get(), piece, std::min(sizeof piece, bytes - out.size()));
      if (got <= 0) break;
      out.append(piece, static_cast<std::size_t>(got));
    }
    return out;
  }
  static std::string request(std::string_view body) {
    return cat("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
  }
  static std::string answer(std::string_view body) {
    return cat("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ", body.size(),
               "\r\n\r\n", body);
  }

  os::SystemClock clock_;
  Back back_;
  std::optional<Answers> handler_;
  std::unique_ptr<Lanes> lanes_;
};

TEST_F(LanesTest, WhatIsPlainIsAnswered) {
  open(answering("{}"));
  const os::Fd client = join();
  for (int i = 0; i < 3; ++i) {
    say(client, request("{\"a\":1}"));
    EXPECT_EQ(hear(client, answer("{}").size()), answer("{}"));
  }
  EXPECT_EQ(lanes_->connections(), 1U);
}

TEST_F(LanesTest, WhatIsNotPlainGoesBackWithAllThatWasRead) {
  open(answering("{}"));
  const std::string whole = request("{}");
  const std::vector<std::string> odd = {
      whole.substr(0, 10),
      whole.substr(0, whole.size() - 1),
      whole + whole,
      "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
      "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
      "POST /x HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
      "POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
      "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
      "GET /x HTTP/1.1\r\nHost: h\r\n\r\n",
      "nonsense\r\n\r\n"};
  for (const std::string& text : odd) {
    const os::Fd client = join();
    say(client, text);
    const Moved moved = back_.wait();
    EXPECT_EQ(moved.unread, text);
    EXPECT_TRUE(moved.fd);
    EXPECT_EQ(moved.returned, 1U);
  }
  EXPECT_EQ(lanes_->connections(), 0U);
}

// A second request may be behind it, and nothing would tell the lane of that one.
TEST_F(LanesTest, WhatFillsItsPieceGoesBackAlsoIfItIsWhole) {
  open(answering("{}"));
  constexpr std::size_t kPiece = 8192;
  const std::size_t head = request(std::string(kPiece, ' ')).size() - kPiece;
  const std::string whole = request(std::string(kPiece - head, ' '));
  ASSERT_EQ(whole.size(), kPiece);
  const os::Fd client = join();
  say(client, whole + request("{}"));
  EXPECT_EQ(back_.wait().unread, whole);
}

TEST_F(LanesTest, WhatIsDeclinedGoesBack) {
  How how = answering("{}");
  how.takes = [](const ShortCall& /*call*/) { return false; };
  open(how);
  const os::Fd client = join();
  say(client, request("{}"));
  const Moved moved = back_.wait();
  EXPECT_EQ(moved.unread, request("{}"));
  EXPECT_EQ(moved.unsent, "");
}

TEST_F(LanesTest, AnEndIsTheLoops) {
  open(answering("{}"));
  os::Fd client = join();
  client.reset();
  EXPECT_EQ(back_.wait().unread, "");
}

// The answers that are before it have gone out by then, and none is sent twice.
TEST_F(LanesTest, WhoDoesNotTakeItsAnswersGoesBackWithTheRest) {
  const std::string body(std::size_t{4} << 20U, 'x');
  open(answering(body));
  const os::Fd client = join();
  say(client, request("{}"));
  const Moved moved = back_.wait();
  const std::string whole = answer(body);
  ASSERT_FALSE(moved.unsent.empty());
  ASSERT_LT(moved.unsent.size(), whole.size());
  const std::string sent = hear(client, whole.size() - moved.unsent.size());
  EXPECT_TRUE(sent + moved.unsent == whole);
}

// What waits for no disk is with the client while the rest of its turn waits for one.
TEST_F(LanesTest, WhatIsSentEarlyDoesNotWaitForTheEndOfTheTurn) {
  Mutex mutex;
  std::condition_variable_any changed;
  bool heard = false;
  open({.serve = [&](Calls& calls, const Pause& pause) {
    answer_all(calls, "{}");
    pause();
    MutexLock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return heard; }));
  }});
  const os::Fd client = join();
  say(client, request("{}"));
  EXPECT_EQ(hear(client, answer("{}").size()), answer("{}"));
  {
    const MutexLock lock(mutex);
    heard = true;
  }
  changed.notify_all();
  lanes_->stop();  // its thread uses what stands here
}

// A turn that goes on until it is told to end, so that what is said meanwhile is in the next one.
class Gate {
 public:
  void pass() {
    MutexLock lock(mutex_);
    entered_ = true;
    changed_.notify_all();
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [this]() REQUIRES(mutex_) { return open_; }));
  }
  void wait_until_entered() {
    MutexLock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [this]() REQUIRES(mutex_) { return entered_; }));
  }
  void open() {
    const MutexLock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool entered_ GUARDED_BY(mutex_) = false;
  bool open_ GUARDED_BY(mutex_) = false;
};

// Found in the very turn in which another one is declined: the rest of the answer is sent all the
// same.
TEST_F(LanesTest, AStuckOneIsNotForgottenBesideOneWhoIsDeclined) {
  const std::string body(std::size_t{4} << 20U, 'x');
  Gate gate;
  open({.serve =
            [&](Calls& calls, const Pause& /*pause*/) {
              gate.pass();
              for (const auto& call : calls) {
                call->answer({.status = 200, .body = call->body() == "long" ? body : "{}"});
              }
            },
        .takes = [](const ShortCall& call) { return call.body() != "no"; }});
  const os::Fd first = join();
  const os::Fd greedy = join();
  const os::Fd declined = join();
  say(first, request("first"));
  gate.wait_until_entered();
  say(greedy, request("long"));
  say(declined, request("no"));
  gate.open();
  const Moved one = back_.wait();
  const Moved other = back_.wait();  // both, in whatever order
  EXPECT_FALSE(one.unsent.empty() && other.unsent.empty());
  lanes_->stop();
}

// The store of these tests is asked by one turn at a time, and waits for its disk where it is told.
class SlowStore {
 public:
  How how() {
    return {.serve = [this](Calls& calls, const Pause& pause) { serve(calls, pause); },
            .looks =
                [](ShortCall& call) {
                  const bool refused = call.body() == "refused";
                  if (refused) call.answer({.status = 200, .body = "{}"});
                  return refused;
                }};
  }
  Gate disk;
  std::atomic<int> at_once = 0;  // the most turns that were at the store
  std::atomic<int> turns = 0;

 private:
  void serve(Calls& calls, const Pause& pause) {
    ++turns;
    pause();
    const int now = ++inside_;
    if (now > at_once) at_once = now;
    disk.pass();
    --inside_;
    answer_all(calls, "{}");
  }
  std::atomic<int> inside_ = 0;
};

// A refusal never waits for a disk sync: not for its own turn's, nor for that of the turn before.
TEST_F(LanesTest, WhoIsRefusedDoesNotWaitForATurnThatWaitsForTheDisk) {
  SlowStore store;
  open(store.how());
  const os::Fd first = join();
  const os::Fd refused = join();
  const os::Fd granted = join();
  say(first, request("granted"));
  store.disk.wait_until_entered();
  say(granted, request("granted"));
  for (int i = 0; i < 3; ++i) {
    say(refused, request("refused"));
    EXPECT_EQ(hear(refused, answer("{}").size()), answer("{}"));
  }
  EXPECT_EQ(store.turns, 1);
  store.disk.open();
  EXPECT_EQ(hear(first, answer("{}").size()), answer("{}"));
  EXPECT_EQ(hear(granted, answer("{}").size()), answer("{}"));
  EXPECT_EQ(store.turns, 2);
  lanes_->stop();
}

// An end that is seen while the turn serves that connection is looked at when the turn has let go.
TEST_F(LanesTest, WhoLeavesDuringItsTurnIsTheLoopsAfterIt) {
  SlowStore store;
  open(store.how());
  os::Fd leaver = join();
  const os::Fd other = join();
  say(leaver, request("granted"));
  store.disk.wait_until_entered();
  ASSERT_EQ(::shutdown(leaver.get(), SHUT_WR), 0);
  // So it has been seen.
  say(other, request("refused"));
  EXPECT_EQ(hear(other, answer("{}").size()), answer("{}"));
  EXPECT_EQ(lanes_->connections(), 2U);
  store.disk.open();
  EXPECT_EQ(back_.wait().unread, "");
  EXPECT_EQ(hear(leaver, answer("{}").size()), answer("{}"));
  lanes_->stop();
}

// Clients ask one thing after the other of a store that now waits and now does not: each gets as
// many answers as it asked for, and there is one turn at the store at a time.
TEST_F(LanesTest, TwoThreadsAtOneDoorLoseAndRepeatNothing) {
  SlowStore store;
  store.disk.open();
  open(store.how());
  constexpr std::size_t kClients = 24;
  constexpr int kRounds = 400;
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;
  for (std::size_t i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i, client = join()] {
      for (int round = 0; round < kRounds; ++round) {
        say(client,
            request((i + static_cast<std::size_t>(round)) % 3 == 0 ? "granted" : "refused"));
        if (hear(client, answer("{}").size()) == answer("{}")) ++answered;
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(answered, static_cast<int>(kClients) * kRounds);
  EXPECT_EQ(store.at_once, 1);
  lanes_->stop();
}

struct Set final : Clock {
  MonoTime mono() const override { return MonoTime(Nanos(ns)); }
  WallTime wall() const override { return {}; }
  void add(int seconds) { ns += Nanos(std::chrono::seconds(seconds)).count(); }
  std::atomic<std::int64_t> ns = std::int64_t{1} << 40U;
};

// The store was slow for longer than a connection may be idle: a request that came meanwhile is not
// idle.
TEST_F(LanesTest, WhatWasAskedDuringALongTurnIsAnswered) {
  Set clock;
  Gate gate;
  Answers handler({.serve = [&](Calls& calls, const Pause& /*pause*/) {
    gate.pass();
    answer_all(calls, "{}");
  }});
  auto lanes = Lanes::open(1, Millis(60'000), handler, clock,
                           [this](Moved moved) { back_.put(std::move(moved)); });
  ASSERT_TRUE(lanes) << lanes.error().message;
  lanes_ = std::move(*lanes);
  const os::Fd first = join();
  const os::Fd second = join();
  say(first, request("{}"));
  gate.wait_until_entered();
  say(second, request("{}"));
  clock.add(61);
  gate.open();
  EXPECT_EQ(hear(first, answer("{}").size()), answer("{}"));
  EXPECT_EQ(hear(second, answer("{}").size()), answer("{}"));
  lanes_.reset();
}

TEST_F(LanesTest, AnIdleOneEndsAlsoBesideOneWhoIsNeverIdle) {
  Set clock;
  Answers handler(answering("{}"));
  auto lanes = Lanes::open(1, Millis(60'000), handler, clock,
                           [this](Moved moved) { back_.put(std::move(moved)); });
  ASSERT_TRUE(lanes) << lanes.error().message;
  lanes_ = std::move(*lanes);
  const os::Fd idle = join();
  const os::Fd busy = join();
  pollfd ended{.fd = idle.get(), .events = POLLIN, .revents = 0};
  for (int i = 0; i < 4000 && ::poll(&ended, 1, 1) == 0; ++i) {
    if (i < 10) clock.add(7);
    say(busy, request("{}"));
    ASSERT_EQ(hear(busy, answer("{}").size()), answer("{}"));
  }
  EXPECT_EQ(hear(idle, 1), "");
  EXPECT_EQ(lanes_->connections(), 1U);
  lanes_.reset();
}

TEST_F(LanesTest, ManyAreServedAtATime) {
  open(answering("{}"));
  std::vector<os::Fd> clients;
  constexpr std::size_t kMany = 300;
  for (std::size_t i = 0; i < kMany; ++i) clients.push_back(join());
  for (int round = 0; round < 20; ++round) {
    for (const os::Fd& client : clients) say(client, request("{\"a\":1}"));
    for (const os::Fd& client : clients) {
      ASSERT_EQ(hear(client, answer("{}").size()), answer("{}"));
    }
  }
  EXPECT_EQ(lanes_->connections(), kMany);
}

TEST_F(LanesTest, AStopClosesAllAndTakesNoneAnyMore) {
  open(answering("{}"));
  const os::Fd before = join();
  lanes_->stop();
  const os::Fd after = join();
  EXPECT_EQ(hear(before, 1), "");
  EXPECT_EQ(hear(after, 1), "");
  EXPECT_EQ(lanes_->connections(), 0U);
}

}  // namespace
}  // namespace stint::net::http
