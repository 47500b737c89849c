#include "net/http/lanes.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>

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

class Answers final : public TurnHandler {
 public:
  explicit Answers(std::function<void(Turn&)> how) : how_(std::move(how)) {}
  void turn(Turn& turn) override { how_(turn); }

 private:
  const std::function<void(Turn&)> how_;
};

void answer_all(Turn& turn, const std::string& body) {
  for (const auto& call : turn.calls()) call->answer({.status = 200, .body = body});
}

class LanesTest : public ::testing::Test {
 protected:
  void open(std::function<void(Turn&)> how) {
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
  open([](Turn& turn) { answer_all(turn, "{}"); });
  const os::Fd client = join();
  for (int i = 0; i < 3; ++i) {
    say(client, request("{\"a\":1}"));
    EXPECT_EQ(hear(client, answer("{}").size()), answer("{}"));
  }
  EXPECT_EQ(lanes_->connections(), 1U);
}

TEST_F(LanesTest, WhatIsNotPlainGoesBackWithAllThatWasRead) {
  open([](Turn& turn) { answer_all(turn, "{}"); });
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
  open([](Turn& turn) { answer_all(turn, "{}"); });
  constexpr std::size_t kPiece = 8192;
  const std::size_t head = request(std::string(kPiece, ' ')).size() - kPiece;
  const std::string whole = request(std::string(kPiece - head, ' '));
  ASSERT_EQ(whole.size(), kPiece);
  const os::Fd client = join();
  say(client, whole + request("{}"));
  EXPECT_EQ(back_.wait().unread, whole);
}

TEST_F(LanesTest, WhatIsDeclinedGoesBack) {
  open([](Turn& /*turn*/) {});
  const os::Fd client = join();
  say(client, request("{}"));
  const Moved moved = back_.wait();
  EXPECT_EQ(moved.unread, request("{}"));
  EXPECT_EQ(moved.unsent, "");
}

TEST_F(LanesTest, AnEndIsTheLoops) {
  open([](Turn& turn) { answer_all(turn, "{}"); });
  os::Fd client = join();
  client.reset();
  EXPECT_EQ(back_.wait().unread, "");
}

// The answers that are before it have gone out by then, and none is sent twice.
TEST_F(LanesTest, WhoDoesNotTakeItsAnswersGoesBackWithTheRest) {
  const std::string body(std::size_t{4} << 20U, 'x');
  open([&](Turn& turn) { answer_all(turn, body); });
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
  open([&](Turn& turn) {
    answer_all(turn, "{}");
    turn.send();
    MutexLock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return heard; }));
  });
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
  open([&](Turn& turn) {
    gate.pass();
    for (const auto& call : turn.calls()) {
      if (call->body() == "long") call->answer({.status = 200, .body = body});
      if (call->body() == "first") call->answer({.status = 200, .body = "{}"});
    }
  });
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

// The store was slow for longer than a connection may be idle: a request that came meanwhile is not
// idle.
TEST_F(LanesTest, WhatWasAskedDuringALongTurnIsAnswered) {
  struct Set final : Clock {
    MonoTime mono() const override { return MonoTime(Nanos(ns)); }
    WallTime wall() const override { return {}; }
    std::atomic<std::int64_t> ns = std::int64_t{1} << 40U;
  };
  Set clock;
  Gate gate;
  Answers handler([&](Turn& turn) {
    gate.pass();
    answer_all(turn, "{}");
  });
  auto lanes = Lanes::open(1, Millis(60'000), handler, clock,
                           [this](Moved moved) { back_.put(std::move(moved)); });
  ASSERT_TRUE(lanes) << lanes.error().message;
  lanes_ = std::move(*lanes);
  const os::Fd first = join();
  const os::Fd second = join();
  say(first, request("{}"));
  gate.wait_until_entered();
  say(second, request("{}"));
  clock.ns += Nanos(std::chrono::seconds(61)).count();
  gate.open();
  EXPECT_EQ(hear(first, answer("{}").size()), answer("{}"));
  EXPECT_EQ(hear(second, answer("{}").size()), answer("{}"));
  lanes_.reset();
}

TEST_F(LanesTest, ManyAreServedAtATime) {
  open([](Turn& turn) { answer_all(turn, "{}"); });
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
  open([](Turn& turn) { answer_all(turn, "{}"); });
  const os::Fd before = join();
  lanes_->stop();
  const os::Fd after = join();
  EXPECT_EQ(hear(before, 1), "");
  EXPECT_EQ(hear(after, 1), "");
  EXPECT_EQ(lanes_->connections(), 0U);
}

}  // namespace
}  // namespace stint::net::http
