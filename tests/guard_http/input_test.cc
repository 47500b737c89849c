// Bad input at the HTTP guard: a clear answer, nothing forwarded.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/guard_http/world.h"

namespace stint::test {
namespace {

TEST(HttpInput, TokensThatAreNotTheHoldersAreRefusedWithTheirOwnStatus) {
  ProxyWorld world;
  world.start();
  const auto a = world.issue();
  EXPECT_EQ(world.send(a + 5).status, 403);
  EXPECT_NE(world.send(a + 5).body.find("\"code\":\"never_issued\""), std::string::npos);
  const auto b = world.issue();
  const Reply stale = world.send(a);
  EXPECT_EQ(stale.status, 412);
  EXPECT_NE(stale.body.find("\"code\":\"stale\""), std::string::npos) << stale.body;
  EXPECT_EQ(world.send(b).status, 200);
  world.revoke();
  EXPECT_EQ(world.send(b + 1).status, 403);
  EXPECT_NE(world.send(b + 1).body.find("never_granted"), std::string::npos);
  EXPECT_EQ(world.upstream.landed(), (std::vector<std::uint64_t>{b}));
}

TEST(HttpInput, MissingAndWrongHeaders) {
  ProxyWorld world;
  world.start();
  const auto a = world.issue();
  const std::string rest = "Content-Length: 1\r\n\r\nx";
  EXPECT_EQ(world.ask(cat("PUT / HTTP/1.1\r\nHost: x\r\n", rest)).status, 428);
  EXPECT_EQ(world.ask(cat("PUT / HTTP/1.1\r\nHost: x\r\nFencing-Token: 1\r\n", rest)).status, 428);
  EXPECT_EQ(
      world.ask(cat("PUT / HTTP/1.1\r\n", world.headers(a), "Fencing-Token: 9\r\n", rest)).status,
      400);
  EXPECT_EQ(world.ask(cat("PUT / HTTP/1.1\r\nHost: x\r\nFencing-Token: -1\r\n", rest)).status, 400);
  EXPECT_EQ(world
                .ask(cat("PUT / HTTP/1.1\r\nHost: x\r\nFencing-Token: 1\r\nFencing-Resource: "
                         "other\r\nFencing-Generation: ",
                         world.opened->leases().generation().hex(), "\r\n", rest))
                .status,
            403);
  EXPECT_EQ(world
                .ask(cat("PUT / HTTP/1.1\r\nHost: x\r\nFencing-Token: 1\r\nFencing-Generation: ",
                         std::string(31, '0'), "1\r\n", rest))
                .status,
            403)
      << "another store's life";
  EXPECT_EQ(world.ask("CONNECT / HTTP/1.1\r\nHost: x\r\n\r\n").status, 405);
  EXPECT_TRUE(world.upstream.landed().empty());
}

TEST(HttpInput, SafeMethodsPassUnlessTold) {
  ProxyWorld world;
  world.start();
  const std::string get = "GET /doc HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_EQ(world.ask(get).status, 200);
  world.proxy.reset();
  world.request.guard_safe_methods = true;
  world.start();
  EXPECT_EQ(world.ask(get).status, 428);
}

TEST(HttpInput, OnceMeansOnce) {
  ProxyWorld world;
  world.start();
  const auto a = world.issue();
  const auto once = [&](const std::string& key) {
    return world.ask(cat("PUT / HTTP/1.1\r\n", world.headers(a),
                         "Fencing-Mode: once\r\nFencing-Key: ", key,
                         "\r\nContent-Length: 1\r\n\r\nx"));
  };
  EXPECT_EQ(once("k").status, 200);
  EXPECT_EQ(once("other").status, 409);
  EXPECT_EQ(once("k").status, 409) << "whether it took effect the upstream knows";
  EXPECT_EQ(world.upstream.landed().size(), 1U);
}

// Every one of these is read differently by some server somewhere.
TEST(HttpInput, WhatCouldSmuggleARequestIsRefusedAndTheConnectionClosed) {
  ProxyWorld world;
  world.start();
  const auto a = world.issue();
  const std::string head = cat("POST / HTTP/1.1\r\n", world.headers(a));
  const std::vector<std::string> bad = {
      cat(head, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
      cat(head, "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
      cat(head, "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
      cat(head, "Content-Length: +5\r\n\r\nhello"),
      cat(head, "Content-Length: 5, 5\r\n\r\nhello"),
      cat(head, "Content-Length: 99999999999999999999999\r\n\r\nhello"),
      cat(head, "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
      cat(head, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
      cat(head, "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
      cat(head, "X: a\r\n folded\r\nContent-Length: 1\r\n\r\nx"),
      cat(head, "X: a\nContent-Length: 1\r\n\r\nx"),
      cat(head, "Content-Length: 1\n\nx"),
      cat(head, "Host: y\r\nContent-Length: 1\r\n\r\nx"),
      cat("POST /a b HTTP/1.1\r\n", world.headers(a), "\r\n"),
      cat("POST / HTTP/2.0\r\n", world.headers(a), "\r\n"),
      std::string("POST / HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", 36),
      "GET http://elsewhere/ HTTP/1.1\r\nHost: x\r\n\r\n",
      "\r\n\r\n",
  };
  for (const std::string& text : bad) {
    Client client(world.port());
    ASSERT_TRUE(client.send(text));
    EXPECT_EQ(client.read().status, 400) << printable(text);
    EXPECT_TRUE(client.closed()) << printable(text);
  }
  // A chunk that is not one, with the head, and later: the upstream never sees anything of it.
  const std::string chunked = cat(head, "Transfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(world.ask(cat(chunked, "3\r\nabcd\r\n0\r\n\r\n")).status, 400);
  EXPECT_EQ(world.upstream.heads(), 0);
  Client client(world.port());
  ASSERT_TRUE(client.send(cat(chunked, "3\r\nabc\r\n")));
  ASSERT_TRUE(client.send("3\r\nabcd\r\n0\r\n\r\n"));
  EXPECT_EQ(client.read().status, 400);
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(world.upstream.heads(), 0);
  EXPECT_EQ(world.send(a).status, 200) << "it lives";
}

TEST(HttpInput, TooMuchAndTooSlowAreCutOff) {
  ProxyWorld world;
  world.request.limits.head_time = Millis(300);
  world.request.limits.stall_time = Millis(300);
  world.request.limits.body_bytes = 1000;
  world.request.limits.connections = 3;
  world.start();
  const auto a = world.issue();
  const Reply long_head =
      world.ask(cat("GET / HTTP/1.1\r\nHost: x\r\nX: ", std::string(20'000, 'a'), "\r\n\r\n"));
  EXPECT_EQ(long_head.status, 431);
  EXPECT_EQ(world.send(a, std::string(1001, 'b')).status, 413);
  EXPECT_EQ(world
                .ask(cat("PUT / HTTP/1.1\r\n", world.headers(a),
                         "Transfer-Encoding: chunked\r\n\r\n7d0\r\n", std::string(2000, 'c'),
                         "\r\n0\r\n\r\n"))
                .status,
            413);
  {
    Client loris(world.port());
    ASSERT_TRUE(loris.send("GET / HTTP/1.1\r\nHost:"));
    const MonoTime from = now();
    while (now() - from < Millis(250) && loris.send("x")) (void)receive(loris.fd(), 1, Millis(20));
    EXPECT_EQ(loris.read().status, 408);
    EXPECT_TRUE(loris.closed());
  }
  Client stalled(world.port());
  const std::string whole = world.put(a, "0123456789");
  ASSERT_TRUE(stalled.send(std::string_view(whole).substr(0, whole.size() - 5)));
  EXPECT_EQ(stalled.read().status, 408);
  EXPECT_TRUE(stalled.closed());
  world.upstream.answer_halves(true);
  Client answered(world.port());
  ASSERT_TRUE(answered.send(std::string_view(whole).substr(0, whole.size() - 5)));
  EXPECT_EQ(answered.read().status, 408) << "whatever the upstream makes of the half";
  EXPECT_TRUE(answered.closed());
  EXPECT_TRUE(world.upstream.landed().empty());
  std::vector<std::unique_ptr<Client>> many;
  for (int i = 0; i < 4; ++i) many.push_back(std::make_unique<Client>(world.port()));
  EXPECT_EQ(many.back()->read().status, 503) << "too many connections";
}

TEST(HttpInput, NoUpstreamAndNoStore) {
  ProxyWorld world;
  world.request.upstream.port = free_port();
  world.start();
  const auto a = world.issue();
  EXPECT_EQ(world.send(a).status, 502);
  world.proxy.reset();
  world.request.upstream.port = world.upstream.port();
  world.start();
  world.fences->down = true;
  const Reply down = world.send(a);
  EXPECT_EQ(down.status, 503);
  EXPECT_EQ(down.field("Retry-After"), "1");
  world.fences->down = false;
  EXPECT_EQ(world.send(a).status, 200);
  const auto b = world.issue();
  world.fences->down = true;
  EXPECT_EQ(world.send(a).status, 503) << "a change was heard of, and cannot be looked at";
  EXPECT_EQ(world.send(b).status, 503);
  world.fences->down = false;
  EXPECT_EQ(world.send(b).status, 200);
  EXPECT_EQ(world.upstream.landed(), (std::vector<std::uint64_t>{a, b}));
}

TEST(HttpInput, BodiesStreamAndConnectionsStay) {
  ProxyWorld world;
  world.start();
  const auto a = world.issue();
  const std::string big(3'000'000, 'z');
  Client client(world.port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send(world.put(a, big)));
    const Reply reply = client.read(Millis(10'000));
    ASSERT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body.size(), big.size());
  }
  // Two requests in one write are answered in order.
  ASSERT_TRUE(client.send(cat(world.put(a, "one"), world.put(a, "two"))));
  EXPECT_EQ(client.read().body, "one");
  EXPECT_EQ(client.read().body, "two");
}

TEST(HttpInput, AStandbyForwardsNothing) {
  ProxyWorld world;
  world.start(false);
  EXPECT_EQ(world.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").status, 503);
  EXPECT_EQ(world.send(world.issue()).status, 503);
  EXPECT_EQ(world.ask(cat("GET ", guard::http::kReadyPath, " HTTP/1.1\r\nHost: x\r\n\r\n")).status,
            503);
  EXPECT_EQ(world.upstream.heads(), 0);
}

}  // namespace
}  // namespace stint::test
