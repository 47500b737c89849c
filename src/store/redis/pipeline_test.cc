#include "store/redis/pipeline.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "os/clock.h"
#include "os/fd.h"
#include "os/pause.h"

namespace stint::store::redis {
namespace {

constexpr std::size_t kLoginEnds = 1;  // SELECT

// Answers every command with the number of the connection that it came over, while it may.
class Server {
 public:
  Server() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
    socklen_t size = sizeof at;
    ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at), &size);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    options.host = "127.0.0.1";
    options.port = ntohs(at.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~Server() {
    ends_ = true;
    accepting_.join();
    for (std::thread& one : talking_) one.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Options options;
  std::atomic<int> silent = 0;  // the connection that gets no answers for now
  std::atomic<int> connections = 0;

 private:
  static bool readable(int fd) {
    pollfd wanted{fd, POLLIN, 0};
    return ::poll(&wanted, 1, 10) == 1;
  }
  void accept_all() {
    while (!ends_) {
      if (!readable(listener_.get())) continue;
      const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      const int number = ++connections;
      talking_.emplace_back([this, fd, number] { talk(os::Fd(fd), number); });
    }
  }
  void talk(const os::Fd& fd, int number) const {
    std::size_t seen = 0;
    while (!ends_) {
      if (!readable(fd.get())) continue;
      char bytes[4096];
      const ssize_t got = ::recv(fd.get(), bytes, sizeof bytes, 0);
      if (got <= 0) return;
      const auto commands = static_cast<std::size_t>(std::count(bytes, bytes + got, '*'));
      while (seen >= kLoginEnds && silent == number && !ends_) os::pause_for(Millis(1));
      seen += commands;
      std::string out;
      for (std::size_t i = 0; i < commands; ++i) out += ":" + std::to_string(number) + "\r\n";
      ::send(fd.get(), out.data(), out.size(), MSG_NOSIGNAL);
    }
  }

  os::Fd listener_;
  std::atomic<bool> ends_ = false;
  std::vector<std::thread> talking_;
  std::thread accepting_;
};

class PipelineTest : public ::testing::Test {
 protected:
  // The connection that answered; 0: none did.
  std::int64_t ask(Millis patience = Millis(10'000)) {
    Question question;
    append_command(question.bytes, {"PING"});
    const auto answer = pipeline_.ask(question, os::system_clock().mono() + patience);
    return answer ? answer->replies.front().number : 0;
  }
  // So many threads that ask once each.
  std::vector<std::thread> start(std::size_t count, Millis patience = Millis(10'000)) {
    std::vector<std::thread> out;
    for (std::size_t i = 0; i < count; ++i) {
      out.emplace_back([this, patience] {
        const std::int64_t by = ask(patience);
        if (by < 3) ++by_[static_cast<std::size_t>(by)];
      });
    }
    return out;
  }
  static void join(std::vector<std::thread>& threads) {
    for (std::thread& one : threads) one.join();
  }
  template <class Condition>
  static void until(Condition condition) {
    while (!condition()) os::pause_for(Millis(1));
  }

  Server server_;
  Pipeline pipeline_{server_.options,
                     [this](MonoTime soon) { return Link::open(server_.options, soon); }};
  std::array<std::atomic<int>, 3> by_ = {};
};

TEST_F(PipelineTest, FewNeedOneConnection) {
  for (int i = 0; i < 50; ++i) {
    auto threads = start(3);
    join(threads);
  }
  EXPECT_EQ(by_[1], 150);
  EXPECT_EQ(server_.connections, 1);
}

TEST_F(PipelineTest, ManyDoNotWaitForOneBatch) {
  EXPECT_EQ(ask(), 1);
  server_.silent = 1;
  auto first = start(1);
  os::pause_for(Millis(50));
  // Those who come while the first batch is under way, up to the one who leads the second lane.
  auto others = start(40);
  until([&] { return by_[2] > 8; });
  EXPECT_EQ(by_[1], 0);
  server_.silent = 0;
  join(first);
  join(others);
  EXPECT_EQ(by_[0], 0);
  EXPECT_EQ(by_[1] + by_[2], 41);
  EXPECT_EQ(server_.connections, 2);
}

TEST_F(PipelineTest, WhoWaitsInLineGivesUpInTime) {
  EXPECT_EQ(ask(), 1);
  server_.silent = 1;
  auto first = start(1);
  os::pause_for(Millis(50));
  auto impatient = start(3, Millis(700));
  join(impatient);
  EXPECT_EQ(by_[0], 3);
  server_.silent = 0;
  join(first);
  EXPECT_EQ(by_[1], 1);
}

TEST_F(PipelineTest, ForgetsEveryConnection) {
  EXPECT_EQ(ask(), 1);
  server_.silent = 1;
  auto first = start(1);
  os::pause_for(Millis(50));
  auto others = start(40);
  until([&] { return by_[2] > 8; });
  server_.silent = 0;
  join(first);
  join(others);
  ASSERT_EQ(server_.connections, 2);
  pipeline_.forget_link();
  by_[1] = by_[2] = 0;
  for (int i = 0; i < 20; ++i) {
    auto threads = start(64);
    join(threads);
  }
  EXPECT_EQ(by_[1], 0);
  EXPECT_EQ(by_[2], 0);
}

TEST_F(PipelineTest, EverybodyGetsAnAnswer) {
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) answered += ask() != 0 ? 1 : 0;
    });
  }
  join(threads);
  EXPECT_EQ(answered, 32 * 200);
}

}  // namespace
}  // namespace stint::store::redis
