// A server that begins to stop while one of its lanes has a request in hand.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "net/http/server.h"
#include "os/clock.h"
#include "tests/guard_http/world.h"

namespace stint::test {
namespace {

// Short answers on the loop. The lane declines what it was given, but not before it may.
class Declining final : public net::http::Handler, public net::http::TurnHandler {
 public:
  void request(const std::shared_ptr<net::http::Call>& call) override {
    call->answer({.status = stopping ? 503 : 200, .body = "{}", .is_short = true});
  }
  std::unique_ptr<net::http::Sitting> sit() override { return std::make_unique<Seat>(*this); }
  std::atomic<bool> in_hand = false;
  std::atomic<bool> stopping = false;

 private:
  struct Seat final : net::http::Sitting {
    explicit Seat(Declining& one) : all(one) {}
    bool take(const std::shared_ptr<net::http::ShortCall>& /*call*/) override {
      all.in_hand = true;
      EXPECT_TRUE(wait_until([this] { return all.stopping.load(); }));
      return false;
    }
    void look() override {}
    void serve(const Pause& /*pause*/) override {}
    Declining& all;
  };
};

// It was read, so it is answered, as one that the loop has read is: that nothing was done.
TEST(HttpStopping, WhatALaneHasReadAndDeclinedIsAnswered) {
  os::SystemClock clock;
  Declining handler;
  auto server = net::http::Server::start(
      {.listen = {"127.0.0.1", 0}, .upstream = {}, .limits = {}, .turns = &handler}, handler,
      clock);
  ASSERT_TRUE(server) << server.error().message;
  const std::uint16_t port = (*server)->port();
  Client client(port);
  const std::string request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(client.send(request));
    ASSERT_EQ(client.read().status, 200);
  }
  ASSERT_TRUE(client.send(request));
  ASSERT_TRUE(wait_until([&] { return handler.in_hand.load(); }));
  std::thread stopper([&] { EXPECT_TRUE((*server)->stop(Millis(30'000))); });
  // From then on the loop knows.
  EXPECT_TRUE(wait_until([&] { return !os::Fd(connect_loopback(port)); }));
  handler.stopping = true;
  EXPECT_EQ(client.read().status, 503);
  EXPECT_TRUE(client.closed());
  stopper.join();
}

}  // namespace
}  // namespace stint::test
