// The proxy's modes: each request names its lease, an upstream that does not answer, the dry run.
#include <gtest/gtest.h>

#include "base/text.h"
#include "guard/http_target.h"
#include "tests/guard_http/world.h"

namespace stint::test {
namespace {

// The next token of any lease in the world's store.
std::uint64_t issue(ProxyWorld& world, const std::string& resource) {
  const auto answer =
      world.opened->leases().acquire({.resource = ResourceName::parse(resource).value(),
                                      .owner = Owner::parse("ann").value(),
                                      .claim = Claim::make(world.random),
                                      .terms = {.ttl = Millis(60'000)},
                                      .note = "",
                                      .retake = {}});
  return std::get<api::Granted>(*answer).lease.token.number();
}

std::string put_for(const ProxyWorld& world, const std::string& resource, std::uint64_t token) {
  return cat("PUT / HTTP/1.1\r\nHost: x\r\nFencing-Token: ", token,
             resource.empty() ? "" : cat("\r\nFencing-Resource: ", resource),
             "\r\nFencing-Generation: ", world.opened->leases().generation().hex(),
             "\r\nContent-Length: 1\r\n\r\nx");
}

// EVIDENCE-OF: G5
TEST(HttpModes, EachResourceFromItsHeaderHasAFenceOfItsOwn) {
  ProxyWorld world;
  world.request.resource.reset();
  world.start();
  ASSERT_EQ(issue(world, "left"), 1U);
  ASSERT_EQ(issue(world, "right"), 1U);
  EXPECT_EQ(world.ask(put_for(world, "left", 1)).status, 200);
  EXPECT_EQ(world.ask(put_for(world, "right", 1)).status, 200);
  ASSERT_TRUE(world.opened->leases().revoke({.resource = ResourceName::parse("left").value(),
                                             .expected = Token(1),
                                             .why = "test",
                                             .by = "test"},
                                            core::Reason::Revoked));
  ASSERT_EQ(issue(world, "left"), 3U);
  EXPECT_EQ(world.ask(put_for(world, "left", 3)).status, 200);
  EXPECT_EQ(world.ask(put_for(world, "left", 1)).status, 412);
  EXPECT_EQ(world.ask(put_for(world, "right", 1)).status, 200) << "the other one is not touched";
  EXPECT_EQ(world.ask(put_for(world, "right", 3)).status, 403) << "a number counts only in its own";
  EXPECT_EQ(world.ask(put_for(world, "", 3)).status, 428) << "which resource?";
  EXPECT_EQ(world.ask(put_for(world, "no\tname", 3)).status, 400);
  EXPECT_EQ(world.upstream.landed(), (std::vector<std::uint64_t>{1, 1, 3, 1}));
}

// A slow answer of one resource holds nobody else's newer token back.
TEST(HttpModes, ResourcesDoNotWaitForEachOther) {
  ProxyWorld world;
  world.request.resource.reset();
  world.request.drain = Millis(60'000);
  world.start();
  ASSERT_EQ(issue(world, "left"), 1U);
  Client frozen(world.port());
  world.upstream.hold(1);
  ASSERT_TRUE(frozen.send(put_for(world, "left", 1)));
  ASSERT_TRUE(wait_until([&] { return world.upstream.heads() == 1; }));
  ASSERT_EQ(issue(world, "right"), 1U);
  ASSERT_TRUE(world.opened->leases().revoke({.resource = ResourceName::parse("right").value(),
                                             .expected = Token(1),
                                             .why = "test",
                                             .by = "test"},
                                            core::Reason::Revoked));
  ASSERT_EQ(issue(world, "right"), 3U);
  EXPECT_EQ(world.ask(put_for(world, "right", 3)).status, 200);
}

TEST(HttpModes, AnUpstreamThatDoesNotAnswerInTimeIs504AndCountsAsUnderWay) {
  ProxyWorld world;
  world.request.limits.answer_time = Millis(300);
  world.request.drain = Millis(1'500);
  world.start();
  const auto a = world.issue();
  ASSERT_EQ(world.send(a).status, 200);
  world.upstream.hold(a);
  const MonoTime asked = now();
  const Reply late = world.send(a);
  EXPECT_EQ(late.status, 504) << late.body;
  EXPECT_NE(late.body.find("may or may not"), std::string::npos) << late.body;
  const auto b = world.issue();
  Reply reply = world.send(b);
  if (reply.status == 503) reply = world.send(b);
  EXPECT_EQ(reply.status, 200);
  EXPECT_GE(now() - asked, Millis(1'500)) << "the upstream was still at it";
}

struct Told {
  std::vector<guard::Refused> list;
  std::mutex mutex;
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return list.size();
  }
};

// Every refusal is told: also that of a request that shows no token, or another lease's.
TEST(HttpModes, WhatShowsNoTokenOrAnotherResourceIsTold) {
  Told told;  // outlives the world, whose threads tell it
  ProxyWorld world;
  world.request.refused = [&](const guard::Refused& refused, const guard::Pass&) {
    const std::lock_guard lock(told.mutex);
    told.list.push_back(refused);
  };
  world.start();
  EXPECT_EQ(world.ask("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx").status, 428);
  ASSERT_TRUE(wait_until([&] { return told.count() == 1; }));
  EXPECT_EQ(world
                .ask("PUT / HTTP/1.1\r\nHost: x\r\nFencing-Token: 1\r\nFencing-Resource: "
                     "other\r\nContent-Length: 1\r\n\r\nx")
                .status,
            403);
  ASSERT_TRUE(wait_until([&] { return told.count() == 2; }));
  EXPECT_EQ(told.list[0].verdict, core::Verdict::NoToken);
  EXPECT_EQ(told.list[1].verdict, core::Verdict::Foreign);
  for (const guard::Refused& one : told.list) EXPECT_FALSE(one.warned);
  EXPECT_TRUE(world.upstream.landed().empty());
}

TEST(HttpModes, WarnLetsThroughAndTells) {
  Told told;  // outlives the world, whose threads tell it
  ProxyWorld world;
  world.request.warn = true;
  world.request.refused = [&](const guard::Refused& refused, const guard::Pass&) {
    const std::lock_guard lock(told.mutex);
    told.list.push_back(refused);
  };
  world.start();
  const auto a = world.issue();
  EXPECT_EQ(world.send(a).status, 200);
  const auto b = world.issue();
  EXPECT_EQ(world.send(b).status, 200);
  EXPECT_EQ(told.count(), 0U);
  EXPECT_EQ(world.send(a).status, 200) << "stale";
  EXPECT_EQ(world.send(b + 7).status, 200) << "never issued";
  EXPECT_EQ(world.ask("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx").status, 200);
  ASSERT_TRUE(wait_until([&] { return told.count() == 3; }));
  for (const guard::Refused& one : told.list) EXPECT_TRUE(one.warned);
  EXPECT_EQ(world.upstream.landed(), (std::vector<std::uint64_t>{a, b, a, b + 7, 0}));
  // What cannot be read is refused all the same; and a seal is not weakened, and says what it is
  // worth.
  EXPECT_EQ(world
                .ask(cat("PUT / HTTP/1.1\r\n", world.headers(b),
                         "Fencing-Token: 9\r\nContent-Length: 1\r\n\r\nx"))
                .status,
            400);
  const auto seal = [&](std::uint64_t token) {
    return world.ask(cat("POST ", guard::http::kSealPath, " HTTP/1.1\r\n", world.headers(token),
                         "Content-Length: 2\r\n\r\n{}"));
  };
  EXPECT_EQ(seal(a).status, 412);
  EXPECT_NE(seal(b).body.find("\"warn\":true"), std::string::npos);
}

std::vector<guard::CheckLine> look(const ProxyWorld& world) {
  auto lines =
      guard::http::check_proxy({.url = cat("http://127.0.0.1:", world.port(), "/")}, world.clock);
  EXPECT_TRUE(lines) << lines.error().message;
  return lines ? *lines : std::vector<guard::CheckLine>{};
}

std::string levels(const std::vector<guard::CheckLine>& lines) {
  std::string out;
  for (const auto& line : lines) {
    out += line.level == guard::CheckLine::Level::Ok     ? 'o'
           : line.level == guard::CheckLine::Level::Warn ? 'w'
                                                         : 'f';
  }
  return out;
}

TEST(HttpModes, CheckSaysWhatStandsThere) {
  ProxyWorld world;
  world.start(false);
  EXPECT_EQ(levels(look(world)), "woo") << "stands by";
  world.proxy->hold_until(MonoTime::max());
  EXPECT_EQ(levels(look(world)), "oooo");
  EXPECT_TRUE(world.upstream.landed().empty()) << "nothing is forwarded";
  world.request.cut = true;
  world.restart();
  EXPECT_EQ(levels(look(world)), "oowoo");
  world.request.cut = false;
  world.request.warn = true;
  world.restart();
  EXPECT_EQ(levels(look(world)), "oofoo");
  // Past the proxy.
  const auto bare = guard::http::check_proxy(
      {.url = cat("http://127.0.0.1:", world.upstream.port())}, world.clock);
  ASSERT_TRUE(bare);
  EXPECT_EQ(levels(*bare), "f");
  const auto nobody =
      guard::http::check_proxy({.url = cat("http://127.0.0.1:", free_port())}, world.clock);
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Code::Unavailable);
  const auto wrong = guard::http::check_proxy({.url = "127.0.0.1:1"}, world.clock);
  EXPECT_EQ(wrong.error().code, Code::Invalid);
}

}  // namespace
}  // namespace stint::test
