// The zombie play at the HTTP guard: mid-body, answer outstanding, killed, restarted.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <future>

#include "base/text.h"
#include "guard/http/gate.h"
#include "guard/http_target.h"
#include "tests/guard_http/world.h"

namespace stint::test {
namespace {

// Sends all of the head and half of the body.
void send_half(ProxyWorld& world, Client& client, std::uint64_t token) {
  const std::string whole = world.put(token, "0123456789");
  ASSERT_TRUE(client.send(std::string_view(whole).substr(0, whole.size() - 5)));
}

// A request that the upstream has and does not answer.
void send_slow(ProxyWorld& world, Client& client, std::uint64_t token) {
  const std::size_t before = world.upstream.landed().size();
  world.upstream.hold(token);
  ASSERT_TRUE(client.send(world.put(token, "slow")));
  ASSERT_TRUE(wait_until([&] { return world.upstream.landed().size() > before; }));
}

// EVIDENCE-OF: G5
TEST(HttpPlay, AnUploadThatIsFrozenHalfWayKeepsNobodyBackAndIsStaleWhenItGoesOn) {
  ProxyWorld world;
  world.start();
  const auto a = world.issue();
  ASSERT_EQ(world.send(a).status, 200);
  Client zombie(world.port());
  send_half(world, zombie, a);
  const int heads = world.upstream.heads();
  const auto b = world.issue();
  EXPECT_EQ(world.send(b, "of b").status, 200);
  ASSERT_TRUE(zombie.send("56789"));
  EXPECT_EQ(zombie.read().status, 412) << "judged when all of it is here";
  EXPECT_EQ(world.upstream.landed(), (std::vector<std::uint64_t>{a, b}));
  EXPECT_EQ(world.upstream.heads(), heads + 1) << "the upstream saw nothing of it";
}

TEST(HttpPlay, ANewTokenPassesAsSoonAsTheOldOneIsAnswered) {
  ProxyWorld world;
  world.request.drain = Millis(20'000);
  world.start();
  const auto a = world.issue();
  ASSERT_EQ(world.send(a).status, 200);
  world.upstream.hold(a);
  Client slow(world.port());
  ASSERT_TRUE(slow.send(world.put(a, "late")));
  ASSERT_TRUE(wait_until([&] { return world.upstream.landed().size() == 2; }));
  const auto b = world.issue();
  Client next(world.port());
  ASSERT_TRUE(next.send(world.put(b, "next")));
  EXPECT_EQ(next.read(Millis(200)).status, 0) << "waits";
  EXPECT_EQ(world.upstream.landed().size(), 2U);
  world.upstream.let_go(a);
  EXPECT_EQ(next.read().status, 200);
  EXPECT_EQ(slow.read().status, 200);
  EXPECT_EQ(world.upstream.landed(), (std::vector<std::uint64_t>{a, a, b}));
}

// EVIDENCE-OF: G5
TEST(HttpPlay, ARevokedTokenIsRefusedThoughNobodySealed) {
  for (const bool hears : {true, false}) {
    ProxyWorld world;
    if (!hears) world.request.watch = nullptr;
    world.start();
    const auto a = world.issue();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(world.send(a).status, 200);
    world.revoke();
    EXPECT_EQ(world.send(a).status, 412) << hears;
    const auto b = world.issue();
    EXPECT_EQ(world.send(a).status, 412) << hears;
    EXPECT_EQ(world.send(b).status, 200) << hears;
    EXPECT_EQ(world.upstream.landed(), (std::vector<std::uint64_t>{a, a, a, b}));
  }
}

// It is heard of nowhere: neither fails nor wakes.
class DeafWatch final : public Watch {
 public:
  int fd() const override { return never_.fd(); }
  void acknowledge() override {}

 private:
  os::EventFd never_;
};

// EVIDENCE-OF: G5
TEST(HttpPlay, AProxyWhoseWatchHearsNothingAsksTheStoreEverySecond) {
  ProxyWorld world;
  world.request.watch = [](const ResourceName&) -> Result<std::unique_ptr<Watch>> {
    return std::unique_ptr<Watch>(std::make_unique<DeafWatch>());
  };
  world.start();
  const auto a = world.issue();
  ASSERT_EQ(world.send(a).status, 200);
  world.revoke();
  const MonoTime revoked = world.clock.mono();
  const bool refused =
      wait_until([&] { return world.send(a).status == 412; }, guard::http::kHearing * 20);
  EXPECT_TRUE(refused) << std::chrono::floor<Millis>(world.clock.mono() - revoked).count();
}

// EVIDENCE-OF: G5
TEST(HttpPlay, WhatIsRevokedWhileItWaitsIsNotLetThrough) {
  ProxyWorld world;
  world.request.drain = Millis(60'000);
  world.start();
  const auto a = world.issue();
  world.upstream.hold(a);
  Client slow(world.port());
  ASSERT_TRUE(slow.send(world.put(a, "slow")));
  ASSERT_TRUE(wait_until([&] { return world.upstream.landed().size() == 1; }));
  const auto b = world.issue();
  Client waits(world.port());
  ASSERT_TRUE(waits.send(world.put(b, "b")));
  ASSERT_TRUE(wait_until([&] {
    const auto fence =
        world.opened->fences().fence(guard::proxy_name(world.request.upstream, "site"));
    return fence && *fence && (*fence)->token == Token(b);
  }));
  world.revoke();
  world.upstream.let_go(a);
  EXPECT_EQ(waits.read().status, 412);
  EXPECT_EQ(slow.read().status, 200);
  EXPECT_EQ(world.upstream.landed(), std::vector<std::uint64_t>{a});
}

TEST(HttpPlay, OfAKilledUploaderNothingReachesTheUpstream) {
  ProxyWorld world;
  world.request.drain = Millis(60'000);
  world.start();
  const auto a = world.issue();
  ASSERT_EQ(world.send(a).status, 200);
  const int heads = world.upstream.heads();
  {
    Client killed(world.port());
    send_half(world, killed, a);
  }
  const auto b = world.issue();
  EXPECT_EQ(world.send(b).status, 200) << "long before the drain time";
  EXPECT_EQ(world.upstream.landed(), (std::vector<std::uint64_t>{a, b})) << "the half never landed";
  EXPECT_EQ(world.upstream.heads(), heads + 1);
}

TEST(HttpPlay, ARequestThatTheUpstreamNeverAnsweredCountsForTheDrainTime) {
  ProxyWorld world;
  world.request.drain = Millis(1'000);
  world.start();
  const auto a = world.issue();
  ASSERT_EQ(world.send(a).status, 200);
  world.upstream.drop_answers(true);
  const MonoTime dropped = now();
  EXPECT_EQ(world.send(a).status, 502);
  world.upstream.drop_answers(false);
  const auto b = world.issue();
  Reply reply = world.send(b);
  if (reply.status == 503) reply = world.send(b);
  EXPECT_EQ(reply.status, 200);
  EXPECT_GE(now() - dropped, Millis(1'000)) << "the upstream may have been at it";
}

TEST(HttpPlay, CutClosesTheOlderOnes) {
  ProxyWorld world;
  world.request.cut = true;
  world.start();
  const auto a = world.issue();
  ASSERT_EQ(world.send(a).status, 200);
  Client zombie(world.port());
  send_slow(world, zombie, a);
  const auto b = world.issue();
  EXPECT_EQ(world.send(b).status, 200);
  EXPECT_TRUE(zombie.closed());
  EXPECT_EQ(world.upstream.landed(), (std::vector<std::uint64_t>{a, a, b}));
}

TEST(HttpPlay, ASealWaitsForWhatIsUnderWay) {
  ProxyWorld world;
  world.start();
  const auto a = world.issue();
  ASSERT_EQ(world.send(a).status, 200);
  Client zombie(world.port());
  send_slow(world, zombie, a);
  const auto b = world.issue();
  const std::string seal = cat("POST ", guard::http::kSealPath, " HTTP/1.1\r\n", world.headers(b),
                               "Content-Length: 2\r\n\r\n{}");
  EXPECT_EQ(world.ask(seal).status, 503) << "not sealed: something older may still land";
  world.upstream.let_go(a);
  EXPECT_EQ(zombie.read().status, 200);
  EXPECT_EQ(world.ask(seal).status, 200);
  EXPECT_EQ(world.send(a).status, 412);
  EXPECT_EQ(world.upstream.landed(), (std::vector<std::uint64_t>{a, a}));
}

// EVIDENCE-OF: G5
TEST(HttpPlay, AfterAStartOnlyWhatHadPassedPassesUntilTheDrainTimeIsOver) {
  ProxyWorld world;
  world.request.drain = Millis(60'000);
  world.start();
  const auto a = world.issue();
  ASSERT_EQ(world.send(a, "1").status, 200);
  world.restart();
  EXPECT_EQ(world.send(a, "2").status, 200) << "its token had passed before";
  // b raises the fence and waits; the proxy dies; the next one must not take the fence for passed.
  const auto b = world.issue();
  Client waiting(world.port());
  ASSERT_TRUE(waiting.send(world.put(b, "3")));
  const std::string fence = guard::proxy_name(world.request.upstream, "site");
  ASSERT_TRUE(wait_until([&] { return (*world.fences->fence(fence))->token == Token(b); }));
  world.request.drain = Millis(1'500);
  world.restart();
  const MonoTime again = now();
  EXPECT_EQ(world.send(b, "4").status, 200);
  EXPECT_GE(now() - again, Millis(1'400)) << "what the first proxy let through may still land";
  EXPECT_EQ(world.upstream.bodies(), (std::vector<std::string>{"1", "2", "4"}));
}

TEST(HttpPlay, AProxyThatLosesItsLeaseStopsAtOnce) {
  ProxyWorld world;
  world.start();
  const auto a = world.issue();
  ASSERT_EQ(world.send(a).status, 200);
  Client half(world.port());
  send_half(world, half, a);
  world.proxy->hold_until(now());
  EXPECT_EQ(world.send(a).status, 503);
  EXPECT_TRUE(half.send("56789"));
  EXPECT_EQ(half.read().status, 503) << "nothing of it goes out any more";
  EXPECT_EQ(world.upstream.landed().size(), 1U);
}

TEST(HttpPlay, WritersOfManyTokensNeverLandInTheWrongOrder) {
  ProxyWorld world;
  world.request.drain = Millis(2'000);
  world.start();
  constexpr int kTokens = 8;
  std::atomic<std::uint64_t> newest = world.issue();
  std::array<std::atomic<int>, kTokens + 1> accepted{};
  std::atomic<int> refused = 0;
  std::atomic<bool> done = false;
  std::vector<std::thread> writers;
  std::mutex issuing;
  // Each takes a token and goes on writing with it, long after others took over; two share one.
  for (int writer = 0; writer < kTokens + 1; ++writer) {
    writers.emplace_back([&, writer] {
      std::uint64_t mine = 0;
      if (writer < kTokens) {
        const std::lock_guard lock(issuing);
        mine = writer == 0 ? newest.load() : world.issue();
        newest = mine;
      } else {
        mine = newest;
      }
      Client client(world.port());
      while (!done) {
        if (!client.send(world.put(mine, cat(mine)))) break;
        const Reply reply = client.read();
        if (reply.status == 0) break;
        ++(reply.status == 200 ? accepted[static_cast<std::size_t>(writer)] : refused);
      }
    });
    ASSERT_TRUE(wait_until([&] { return accepted[static_cast<std::size_t>(writer)] > 5; }));
  }
  done = true;
  for (std::thread& one : writers) one.join();
  const auto landed = world.upstream.landed();
  EXPECT_TRUE(std::ranges::is_sorted(landed));
  EXPECT_EQ(landed.back(), newest.load());
  EXPECT_EQ(std::set(landed.begin(), landed.end()).size(), std::size_t{kTokens});
  EXPECT_GT(refused, kTokens);
}

}  // namespace
}  // namespace stint::test
