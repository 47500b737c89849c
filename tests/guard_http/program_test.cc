// `stint proxy` as a shell sees it: seal, standby, restart, lost lease.
#include <gtest/gtest.h>
#include <signal.h>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/guard_http/world.h"

namespace stint::test {
namespace {

struct Program {
  Stint stint;
  Upstream upstream;
  std::uint16_t port = free_port();

  Command proxy(std::uint16_t at, std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"proxy",
                                      "--listen",
                                      cat(":", at),
                                      "--upstream",
                                      cat("http://127.0.0.1:", upstream.port()),
                                      "--resource",
                                      "site",
                                      "--drain",
                                      "300ms",
                                      "--ttl",
                                      "3s"};
    words.insert(words.end(), more.begin(), more.end());
    return stint.command(words);
  }
  std::string url() const { return cat("proxy:http://127.0.0.1:", port); }
  Reply put(std::uint16_t at, const std::string& token) const {
    Client client(at);
    client.send(cat("PUT / HTTP/1.1\r\nHost: x\r\nFencing-Token: ", token,
                    "\r\nFencing-Generation: ", stint.lease("site", "generation"),
                    "\r\nContent-Length: 1\r\n\r\nx"));
    return client.read();
  }
};

bool says(const Child& child, const std::string& text) {
  return wait_until([&] { return child.err().find(text) != std::string::npos; });
}

TEST(HttpProgram, SealsThroughTheProxyAndRevokeDoesToo) {
  Program at;
  Child proxy(at.proxy(at.port));
  ASSERT_TRUE(says(proxy, "admitting")) << proxy.err();
  const Finished run = at.stint({"run", "site", "--seal", at.url(), "--", "sh", "-c", "true"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(at.put(at.port, "1").status, 200) << "late but not superseded";
  ASSERT_EQ(at.stint({"acquire", "site"}).out, "2\n");
  const Finished revoked = at.stint({"revoke", "site", "--token", "2", "--why", "test"});
  EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
  EXPECT_EQ(at.put(at.port, "1").status, 412);
  EXPECT_EQ(at.put(at.port, "2").status, 412);
  EXPECT_EQ(at.put(at.port, "3").status, 403) << "a revoke's token";
  const Finished stale = at.stint({"seal", at.url(), "--resource", "site", "--token", "2"});
  EXPECT_EQ(stale.exit_code, 13) << stale.err;
  EXPECT_GE(at.stint.events({"write_refused", "proxy:"}), 1);
  proxy.signal(SIGTERM);
  const auto end = proxy.wait(Millis(5'000));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 0) << proxy.err();
  ASSERT_EQ(at.stint({"acquire", "site"}).out, "4\n");
  const Finished gone = at.stint({"seal", at.url(), "--resource", "site", "--token", "4"});
  EXPECT_EQ(gone.exit_code, 69) << gone.err;
}

// EVIDENCE-OF: G5
TEST(HttpProgram, ARevocationCountsWithoutASeal) {
  Program at;
  Child proxy(at.proxy(at.port));
  ASSERT_TRUE(says(proxy, "admitting")) << proxy.err();
  ASSERT_EQ(at.stint({"acquire", "site"}).out, "1\n");
  for (int i = 0; i < 3; ++i) ASSERT_EQ(at.put(at.port, "1").status, 200);
  ASSERT_EQ(at.stint({"revoke", "site", "--token", "1", "--why", "test"}).exit_code, 0);
  EXPECT_EQ(at.put(at.port, "1").status, 412);
  ASSERT_EQ(at.stint({"acquire", "site"}).out, "3\n");
  EXPECT_EQ(at.put(at.port, "1").status, 412);
  EXPECT_EQ(at.put(at.port, "3").status, 200);
  EXPECT_EQ(at.upstream.landed(), (std::vector<std::uint64_t>{1, 1, 1, 3}));
}

TEST(HttpProgram, ASecondOneStandsByAndTakesOver) {
  Program at;
  Child first(at.proxy(at.port));
  ASSERT_TRUE(says(first, "admitting")) << first.err();
  ASSERT_EQ(at.stint({"acquire", "site"}).out, "1\n");
  ASSERT_EQ(at.put(at.port, "1").status, 200);
  const std::uint16_t other = free_port();
  Child second(at.proxy(other));
  ASSERT_TRUE(says(second, "standing by")) << second.err();
  EXPECT_EQ(at.put(other, "1").status, 503);
  first.signal(SIGKILL);
  ASSERT_TRUE(says(second, "admitting")) << second.err();
  EXPECT_EQ(at.put(other, "1").status, 200);
  EXPECT_EQ(at.upstream.landed().size(), 2U);
}

TEST(HttpProgram, OneThatWasFrozenBeyondItsLeaseAdmitsNothingWhenItWakes) {
  Program at;
  Child first(at.proxy(at.port));
  ASSERT_TRUE(says(first, "admitting")) << first.err();
  ASSERT_EQ(at.stint({"acquire", "site"}).out, "1\n");
  ASSERT_EQ(at.put(at.port, "1").status, 200);
  const std::uint16_t other = free_port();
  Child second(at.proxy(other));
  ASSERT_TRUE(says(second, "standing by")) << second.err();
  first.signal(SIGSTOP);
  ASSERT_TRUE(says(second, "admitting")) << second.err();
  Client late(at.port);
  late.send(cat("PUT / HTTP/1.1\r\nHost: x\r\nFencing-Token: 1\r\nFencing-Generation: ",
                at.stint.lease("site", "generation"), "\r\nContent-Length: 1\r\n\r\nx"));
  first.signal(SIGCONT);
  const int status = late.read().status;
  EXPECT_TRUE(status == 503 || status == 0) << status;
  const auto end = first.wait(Millis(5'000));
  ASSERT_TRUE(end) << first.err();
  EXPECT_EQ(end->code, 75) << first.err();
  EXPECT_EQ(at.upstream.landed().size(), 1U);
}

TEST(HttpProgram, UnderWarnWhatWouldBeRefusedPassesAndIsOnRecord) {
  Program at;
  Command command = at.proxy(at.port);
  command.env.emplace_back("STINT_GUARD", "warn");
  Child proxy(command);
  ASSERT_TRUE(says(proxy, "admitting")) << proxy.err();
  EXPECT_NE(proxy.err().find("UNSAFE"), std::string::npos) << proxy.err();
  ASSERT_EQ(at.stint({"acquire", "site"}).out, "1\n");
  EXPECT_EQ(at.put(at.port, "9").status, 200);
  EXPECT_TRUE(wait_until([&] {
    return at.stint.events({"write_would_be_refused", "never_issued", "proxy:"}) == 1;
  }));
  const Finished check = at.stint({"guard", "check", at.url()});
  EXPECT_EQ(check.exit_code, 1) << check.out;
  EXPECT_NE(check.out.find("fail"), std::string::npos) << check.out;
  command.env.back().second = "perhaps";
  EXPECT_EQ(run(command).exit_code, 2);
}

// The upstream's address instead of the proxy's.
// EVIDENCE-OF: G5
TEST(HttpProgram, WhatIsNoProxyIsNotSealed) {
  Program at;
  ASSERT_EQ(at.stint({"acquire", "site"}).out, "1\n");
  const std::string wrong = cat("proxy:http://127.0.0.1:", at.upstream.port());
  const Finished sealed = at.stint({"seal", wrong, "--resource", "site", "--token", "1"});
  EXPECT_EQ(sealed.exit_code, 69) << sealed.err;
  EXPECT_NE(sealed.err.find("is no stint proxy"), std::string::npos) << sealed.err;
}

TEST(HttpProgram, CheckSaysWhatStandsThere) {
  Program at;
  EXPECT_EQ(at.stint({"guard", "check", at.url()}).exit_code, 69) << "nobody there";
  Child proxy(at.proxy(at.port));
  ASSERT_TRUE(says(proxy, "admitting")) << proxy.err();
  const Finished check = at.stint({"guard", "check", at.url(), "--json"});
  EXPECT_EQ(check.exit_code, 0) << check.out << check.err;
  EXPECT_NE(check.out.find("a request without one is refused"), std::string::npos) << check.out;
  EXPECT_TRUE(at.upstream.landed().empty());
}

TEST(HttpProgram, WrongWords) {
  const Stint stint;
  EXPECT_EQ(stint({"proxy"}).exit_code, 2);
  EXPECT_EQ(stint({"proxy", "--listen", ":1", "--upstream", "http://h:1"}).exit_code, 2);
  EXPECT_EQ(
      stint({"proxy", "--listen", "x", "--upstream", "http://h:1", "--resource", "r"}).exit_code,
      2);
  EXPECT_EQ(
      stint({"proxy", "--listen", ":1", "--upstream", "https://h:1", "--resource", "r"}).exit_code,
      2);
}

}  // namespace
}  // namespace stint::test
