#include "tests/support/tcp_proxy.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/loopback.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

// Answers each line with the same line, and counts the lines that really reached it.
class EchoServer {
 public:
  EchoServer() : listener_(listen_loopback()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~EchoServer() {
    thread_.request_stop();
    stop_.signal();
  }
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  std::uint16_t port() const { return listener_.port; }
  int lines() const { return lines_; }

 private:
  void run(const std::stop_token& stop) {
    std::list<os::Fd> clients;
    while (!stop.stop_requested()) {
      std::vector<pollfd> fds{{stop_.fd(), POLLIN, 0}, {listener_.fd.get(), POLLIN, 0}};
      for (const os::Fd& client : clients) fds.push_back({client.get(), POLLIN, 0});
      ::poll(fds.data(), fds.size(), -1);
      os::Fd accepted(
          ::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (accepted) clients.push_back(std::move(accepted));
      clients.remove_if([this](os::Fd& client) {
        const Received got = receive(client.get(), 1, Millis(0));
        lines_ += static_cast<int>(std::count(got.bytes.begin(), got.bytes.end(), '\n'));
        if (!got.bytes.empty()) send_all(client.get(), got.bytes);
        return got.closed;
      });
    }
  }

  Listener listener_;
  os::EventFd stop_;
  std::atomic<int> lines_ = 0;
  std::jthread thread_;
};

// A client that asks and waits.
struct Client {
  explicit Client(std::uint16_t port) : fd(connect_loopback(port)) {}
  Received say(const std::string& line, Millis deadline = Millis(5'000)) {
    if (!send_all(fd.get(), line)) return {.bytes = {}, .closed = true, .timed_out = false};
    return receive(fd.get(), line.size(), deadline);
  }
  os::Fd fd;
};

constexpr Millis kShort(60);

class TcpProxyTest : public testing::Test {
 protected:
  EchoServer server_;
  TcpProxy proxy_{server_.port()};
};

TEST_F(TcpProxyTest, ForwardsBothWays) {
  Client a(proxy_.port());
  Client b(proxy_.port());
  EXPECT_EQ(a.say("one\n").bytes, "one\n");
  EXPECT_EQ(b.say("two\n").bytes, "two\n");
  const std::string large = std::string(1'000'000, 'x') + '\n';
  EXPECT_EQ(a.say(large).bytes, large);
  EXPECT_EQ(proxy_.counts().connections, 2);
  EXPECT_EQ(server_.lines(), 3);
}

TEST_F(TcpProxyTest, DelaysBothWays) {
  Client client(proxy_.port());
  proxy_.delay(kShort);
  const MonoTime begun = now();
  EXPECT_EQ(client.say("slow\n").bytes, "slow\n");
  EXPECT_GE(now() - begun, 2 * kShort);
}

TEST_F(TcpProxyTest, CutsAndServesAgain) {
  Client client(proxy_.port());
  EXPECT_EQ(client.say("one\n").bytes, "one\n");
  proxy_.cut();
  EXPECT_TRUE(receive(client.fd.get(), 1).closed);
  Client again(proxy_.port());
  EXPECT_EQ(again.say("two\n").bytes, "two\n");
}

TEST_F(TcpProxyTest, RefusesUntilToldToForward) {
  proxy_.refuse();
  Client client(proxy_.port());
  EXPECT_TRUE(!client.fd || receive(client.fd.get(), 1).closed);
  proxy_.forward();
  Client again(proxy_.port());
  EXPECT_EQ(again.say("two\n").bytes, "two\n");
}

TEST_F(TcpProxyTest, DropsTheReplyToARequestThatWasCarriedOut) {
  Client client(proxy_.port());
  proxy_.drop_replies_after(2, TcpProxy::Dropped::Silently);
  EXPECT_EQ(client.say("one\n").bytes, "one\n");
  EXPECT_EQ(client.say("two\n").bytes, "two\n");
  EXPECT_TRUE(client.say("three\n", kShort).timed_out);
  EXPECT_TRUE(wait_until([&] { return server_.lines() == 3; }));
  EXPECT_TRUE(wait_until([&] { return proxy_.counts().dropped_replies == 1; }));
}

TEST_F(TcpProxyTest, CutsWhereTheReplyWouldHaveCome) {
  Client client(proxy_.port());
  proxy_.drop_replies(TcpProxy::Dropped::Cut);
  EXPECT_TRUE(client.say("one\n").closed);
  EXPECT_EQ(server_.lines(), 1);
}

TEST_F(TcpProxyTest, CutsBeforeARequestReachesTheServer) {
  Client client(proxy_.port());
  proxy_.cut_at_request_after(1);
  EXPECT_EQ(client.say("one\n").bytes, "one\n");
  EXPECT_TRUE(client.say("two\n").closed);
  EXPECT_EQ(server_.lines(), 1);
}

TEST_F(TcpProxyTest, SwallowsEverythingAsABlackHole) {
  Client client(proxy_.port());
  EXPECT_EQ(client.say("one\n").bytes, "one\n");
  proxy_.black_hole();
  EXPECT_TRUE(client.say("two\n", kShort).timed_out);
  EXPECT_EQ(server_.lines(), 1);
  proxy_.forward();
  Client again(proxy_.port());
  EXPECT_EQ(again.say("three\n").bytes, "three\n");
}

}  // namespace
}  // namespace stint::test
