// A proxy that is stopped or killed in the middle of a request, before an upstream that takes no
// notice of lengths: the end of a connection is the end of the request to it.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <future>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/guard_http/world.h"

namespace stint::test {
namespace {

// What it was sent is carried out also when the end comes too early; not when the connection is
// reset.
class Careless {
 public:
  Careless() : accepting_([this] { accept_loop(); }) {}
  ~Careless() {
    stop_ = true;
    accepting_.join();
    for (std::thread& one : threads_) one.join();
  }
  Careless(const Careless&) = delete;
  Careless& operator=(const Careless&) = delete;

  std::uint16_t port() const { return listener_.port; }
  int heads() const { return heads_; }
  int resets() const { return resets_; }
  void read_bodies(bool read) { reads_ = read; }
  std::vector<std::string> landed() {
    const std::lock_guard lock(mutex_);
    return landed_;
  }

 private:
  void accept_loop() {
    while (!stop_) {
      pollfd wait{listener_.fd.get(), POLLIN, 0};
      if (::poll(&wait, 1, 50) != 1) continue;
      os::Fd fd(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (fd) threads_.emplace_back([this, held = std::move(fd)] { serve(held.get()); });
    }
  }

  // More bytes; 0: the end, -1: reset, or the test is over.
  ssize_t more(int fd, std::string& buffer) {
    pollfd wait{fd, POLLIN, 0};
    while (::poll(&wait, 1, 50) == 0) {
      if (stop_) return -1;
    }
    std::array<char, 65536> piece{};
    const ssize_t got = ::recv(fd, piece.data(), piece.size(), 0);
    if (got > 0) buffer.append(piece.data(), static_cast<std::size_t>(got));
    return got;
  }

  void serve(int fd) {
    std::string buffer;
    while (!stop_) {
      std::size_t end = 0;
      ssize_t got = 1;
      while (got > 0 && (end = buffer.find("\r\n\r\n")) == std::string::npos) {
        got = more(fd, buffer);
      }
      if (got <= 0) return;
      ++heads_;
      while (!reads_ && !stop_) ::poll(nullptr, 0, 10);
      const std::string head = buffer.substr(0, end);
      const std::size_t at = head.find("Content-Length: ");
      const std::size_t length = at == head.npos ? 1U << 30U : std::stoul(head.substr(at + 16));
      while (got > 0 && buffer.size() < end + 4 + length) got = more(fd, buffer);
      resets_ += got < 0 && !stop_ ? 1 : 0;
      if (got < 0) return;
      const std::string body = buffer.substr(end + 4, length);
      buffer.erase(0, end + 4 + length);
      {
        const std::lock_guard lock(mutex_);
        landed_.push_back(body.substr(0, 20));
      }
      send_all(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      if (got == 0) return;
    }
  }

  const Listener listener_ = listen_loopback();
  std::atomic<bool> stop_ = false;
  std::atomic<bool> reads_ = true;
  std::atomic<int> heads_ = 0;
  std::atomic<int> resets_ = 0;
  std::mutex mutex_;
  std::vector<std::string> landed_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

struct Place {
  Stint stint;
  Careless upstream;

  Command proxy(std::uint16_t at) const {
    return stint.command({"proxy", "--listen", cat(":", at), "--upstream",
                          cat("http://127.0.0.1:", upstream.port()), "--resource", "site",
                          "--drain", "300ms", "--ttl", "3s"});
  }
  std::string head(const std::string& token, std::size_t length) const {
    return cat("PUT / HTTP/1.1\r\nHost: x\r\nFencing-Token: ", token,
               "\r\nFencing-Generation: ", stint.lease("site", "generation"),
               "\r\nContent-Length: ", length, "\r\n");
  }
  // The successor's, once the drain time is over.
  bool put(std::uint16_t at, const std::string& token, const std::string& body) const {
    return wait_until([&] {
      Client client(at);
      client.send(cat(head(token, body.size()), "\r\n", body));
      return client.read().status == 200;
    });
  }
};

bool has_said(const Child& child, const std::string& text) {
  return wait_until([&] { return child.err().find(text) != std::string::npos; });
}

// EVIDENCE-OF: G5
TEST(HttpHalves, AProxyThatIsStoppedInTheMiddleOfAnUploadLeavesNoHalfBehind) {
  for (const bool goes_on : {true, false}) {
    Place at;
    const std::uint16_t port = free_port();
    Child first(at.proxy(port));
    ASSERT_TRUE(has_said(first, "admitting")) << first.err();
    ASSERT_EQ(at.stint({"acquire", "site"}).out, "1\n");
    Client old(port);
    ASSERT_TRUE(old.send(cat(at.head("1", 10), "Expect: 100-continue\r\n\r\n")));
    ASSERT_EQ(old.read().status, 100);
    ASSERT_TRUE(old.send("half "));
    EXPECT_FALSE(wait_until([&] { return at.upstream.heads() > 0; }, Millis(500)))
        << "what is not whole is not passed on";
    const std::uint16_t other = free_port();
    Child second(at.proxy(other));
    ASSERT_TRUE(has_said(second, "standing by")) << second.err();
    first.signal(SIGSTOP);
    ASSERT_TRUE(has_said(second, "admitting")) << second.err();
    ASSERT_EQ(at.stint({"acquire", "site", "--retake"}).out, "2\n");
    ASSERT_TRUE(at.put(other, "2", "successor's"));
    if (goes_on) {
      old.send("half.");
    } else {
      old.hang_up();
    }
    first.signal(SIGCONT);
    const auto end = first.wait(Millis(10'000));
    ASSERT_TRUE(end) << first.err();
    EXPECT_EQ(end->code, 75) << first.err();
    EXPECT_EQ(at.upstream.landed(), std::vector<std::string>{"successor's"});
  }
}

// It is cut so that nothing can take it for the end of the request: also when the kernel closes.
// EVIDENCE-OF: G5
TEST(HttpHalves, WhatWasSentByHalfIsReset) {
  for (const int how : {SIGKILL, SIGSTOP}) {
    Place at;
    at.upstream.read_bodies(false);
    const std::uint16_t port = free_port();
    Child proxy(at.proxy(port));
    ASSERT_TRUE(has_said(proxy, "admitting")) << proxy.err();
    ASSERT_EQ(at.stint({"acquire", "site"}).out, "1\n");
    Client old(port);
    constexpr std::size_t kLong = 48'000'000;  // more than all buffers on the way
    const std::string request = cat(at.head("1", kLong), "\r\n", std::string(kLong, 'x'));
    auto sent = std::async(std::launch::async, [&] { (void)old.send(request); });
    ASSERT_TRUE(wait_until([&] { return at.upstream.heads() == 1; }));
    proxy.signal(how);
    if (how == SIGSTOP) {
      ASSERT_EQ(at.stint({"acquire", "site", "--retake"}).out, "2\n");
      const std::uint16_t other = free_port();
      Child second(at.proxy(other));
      ASSERT_TRUE(has_said(second, "admitting")) << second.err();
      proxy.signal(SIGCONT);
    }
    ASSERT_TRUE(proxy.wait(Millis(20'000))) << proxy.err();
    at.upstream.read_bodies(true);
    EXPECT_TRUE(wait_until([&] { return at.upstream.resets() == 1; }, Millis(10'000)));
    EXPECT_TRUE(at.upstream.landed().empty());
    sent.wait();
  }
}

}  // namespace
}  // namespace stint::test
