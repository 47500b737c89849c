// What upstreams and clients do beside the plain question and answer: interim and early answers,
// answers that break off, upgrades, trailers, Expect, HEAD. None of it may end a request for the
// guard before it is over, or let a token in that was not judged.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/text.h"
#include "tests/guard_http/world.h"

namespace stint::test {
namespace {

// The test itself is the upstream, byte by byte.
class HttpOddity : public ::testing::Test {
 protected:
  HttpOddity() { world_.request.upstream = {"127.0.0.1", listener_.port}; }
  os::Fd accepted(Millis deadline = Millis(8'000)) {
    pollfd wait{listener_.fd.get(), POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(deadline.count())) != 1) return {};
    return os::Fd(::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  }
  // All that comes until these words have.
  static std::string until(int fd, std::string_view words) {
    std::string got;
    const MonoTime end = now() + Millis(8'000);
    while (got.find(words) == std::string::npos && now() < end) {
      const Received more = receive(fd, 1, Millis(200));
      got += more.bytes;
      if (more.closed) break;
    }
    EXPECT_NE(got.find(words), std::string::npos) << printable(got);
    return got;
  }
  // The connection is over, and nothing more came.
  static void expect_over(int fd) {
    const Received rest = receive(fd, 1, Millis(8'000));
    EXPECT_TRUE(rest.closed);
    EXPECT_EQ(rest.bytes, "");
  }

  const Listener listener_ = listen_loopback();
  ProxyWorld world_;
};

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// EVIDENCE-OF: G5
TEST_F(HttpOddity, AnInterimAnswerIsNoAnswer) {
  world_.start();
  const auto a = world_.issue();
  Client old(world_.port());
  ASSERT_TRUE(old.send(world_.put(a, "old")));
  const os::Fd up = accepted();
  until(up.get(), "old");
  ASSERT_TRUE(send_all(up.get(),
                       "HTTP/1.1 100 Continue\r\n\r\n"
                       "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"));
  const auto b = world_.issue();
  EXPECT_EQ(world_.send(b).status, 503) << "the old one is under way still";
  EXPECT_FALSE(accepted(Millis(0)));
  ASSERT_TRUE(send_all(up.get(), kOk));
  EXPECT_EQ(old.read().body, "ok");
  Client next(world_.port());
  ASSERT_TRUE(next.send(world_.put(b, "next")));
  until(up.get(), "next");  // the connection was kept
  ASSERT_TRUE(send_all(up.get(), kOk));
  EXPECT_EQ(next.read().status, 200);
}

// The upstream has had enough of it: what the client still sends does not reach it beside the next
// token's request.
TEST_F(HttpOddity, AfterAnEarlyAnswerNothingMoreOfTheBodyIsSent) {
  world_.start();
  const auto a = world_.issue();
  const std::string body(16'000'000, '0');
  Client old(world_.port());
  ASSERT_TRUE(old.send(world_.put(a, body)));
  const os::Fd up = accepted();
  until(up.get(), "00000");
  ASSERT_TRUE(send_all(up.get(), "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(old.read().status, 413);
  Client next(world_.port());
  ASSERT_TRUE(next.send(world_.put(world_.issue(), "next")));
  const os::Fd second = accepted();
  until(second.get(), "next");
  const Received rest = receive(up.get(), body.size(), Millis(8'000));
  EXPECT_TRUE(rest.closed);
  EXPECT_LT(rest.bytes.size(), body.size());
  ASSERT_TRUE(send_all(second.get(), kOk));
  EXPECT_EQ(next.read().status, 200);
}

// EVIDENCE-OF: G5
TEST_F(HttpOddity, WhatIsNoWholeAnswerCountsForTheDrainTime) {
  constexpr Millis kDrain{700};
  world_.request.drain = kDrain;
  world_.start();
  for (const std::string_view odd :
       {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "not HTTP\r\n\r\n",
        ""}) {
    const auto a = world_.issue();
    Client old(world_.port());
    ASSERT_TRUE(old.send(cat("PUT / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n",
                             world_.headers(a), "Content-Length: 3\r\n\r\nold")));
    os::Fd up = accepted();
    EXPECT_EQ(until(up.get(), "old").find("Upgrade"), std::string::npos);
    const MonoTime before = now();
    ASSERT_TRUE(send_all(up.get(), odd));
    up.reset();
    EXPECT_NE(old.read().status, 200) << odd;
    Client next(world_.port());
    ASSERT_TRUE(next.send(world_.put(world_.issue(), "next")));
    const os::Fd second = accepted();
    until(second.get(), "next");
    EXPECT_GE(now() - before, kDrain) << odd;
    ASSERT_TRUE(send_all(second.get(), cat("HTTP/1.1 200 OK\r\nConnection: close\r\n",
                                           "Content-Length: 0\r\n\r\n")));
    EXPECT_EQ(next.read().status, 200) << odd;
  }
}

TEST_F(HttpOddity, ABodyIsAskedForOnlyOnceItsTokenIsLetThrough) {
  world_.start();
  const auto head = [&](std::uint64_t token) {
    return cat("PUT / HTTP/1.1\r\n", world_.headers(token),
               "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  };
  const auto a = world_.issue();
  const auto b = world_.issue();
  Client next(world_.port());
  ASSERT_TRUE(next.send(head(b)));
  until(next.fd(), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(next.send("body"));
  const os::Fd up = accepted();
  EXPECT_EQ(until(up.get(), "body").find("Expect"), std::string::npos);
  ASSERT_TRUE(send_all(up.get(), kOk));
  EXPECT_EQ(next.read().status, 200);
  Client old(world_.port());
  ASSERT_TRUE(old.send(head(a)));
  EXPECT_EQ(old.read().status, 412) << "and not 100 first";
  EXPECT_TRUE(old.closed());
}

TEST_F(HttpOddity, ATokenInATrailerIsNone) {
  world_.start();
  const auto a = world_.issue();
  const std::string chunked = "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n";
  EXPECT_EQ(world_
                .ask(cat("PUT / HTTP/1.1\r\nHost: x\r\nTrailer: Fencing-Token\r\n", chunked,
                         "Fencing-Token: ", a, "\r\n\r\n"))
                .status,
            428);
  Client client(world_.port());
  ASSERT_TRUE(client.send(
      cat("PUT / HTTP/1.1\r\n", world_.headers(a), chunked, "Fencing-Token: 99\r\n\r\n")));
  const os::Fd up = accepted();
  const std::string got = until(up.get(), "body");
  EXPECT_EQ(got.find("Fencing-Token: 99"), std::string::npos) << got;
  EXPECT_NE(got.find("Content-Length: 4\r\n"), std::string::npos) << got;
  ASSERT_TRUE(send_all(up.get(), kOk));
  EXPECT_EQ(client.read().status, 200);
}

// The length that it names is that of a body which does not come: what follows is the next answer.
TEST_F(HttpOddity, TheAnswerToHeadHasNoBody) {
  world_.request.guard_safe_methods = true;
  world_.start();
  {
    Client none(world_.port());
    ASSERT_TRUE(none.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"));
    until(none.fd(), "HTTP/1.1 428 ");
  }
  const auto a = world_.issue();
  Client client(world_.port());
  ASSERT_TRUE(client.send(cat("HEAD / HTTP/1.1\r\n", world_.headers(a), "\r\n")));
  const os::Fd up = accepted();
  until(up.get(), "\r\n\r\n");
  ASSERT_TRUE(send_all(up.get(), "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"));
  EXPECT_NE(until(client.fd(), "\r\n\r\n").find("Content-Length: 10"), std::string::npos);
  ASSERT_TRUE(client.send(world_.put(a, "next")));
  until(up.get(), "next");
  ASSERT_TRUE(send_all(up.get(), kOk));
  EXPECT_EQ(client.read().body, "ok");
}

}  // namespace
}  // namespace stint::test
