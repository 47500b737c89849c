// What a fork() copies of a Holder is of no use in the child, and does no harm there.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/process.h"
#include "tests/support/servers.h"

namespace stint::test {
namespace {

int count_of(const std::string& text, std::string_view what) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; ++at) ++found;
  return found;
}

void expect_no_harm(const std::string& store, const std::string& own = "refused\n") {
  const TempDir dir;
  const Finished done =
      run({.argv = {FORK_PLAYER, store},
           .env = {{"XDG_STATE_HOME", dir.file("state")}, {"XDG_CONFIG_HOME", dir.file("config")}}},
          Millis(60'000));
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  for (const char* line :
       {"child holding: 0\n", "child late: 1\n", "child ended: 0\n", "parent check: 1\n",
        "parent holding: 1\n", "parent sees: 1 1\n", "parent idle: 1\n", "parent release: 1\n"}) {
    EXPECT_NE(done.out.find(line), std::string::npos) << line << "in\n" << done.out;
  }
  EXPECT_NE(done.out.find("child of its own: " + own), std::string::npos) << done.out;
  EXPECT_EQ(count_of(done.out, "after a fork() the child opens a client of its own"), 12)
      << done.out;
}

// EVIDENCE-OF: G2
TEST(AForkedChild, ThatReturnsFromMainReleasesNothing) {
  const TempDir dir;
  expect_no_harm(cat("sqlite:", dir.file("s.db")), "process ");
  expect_no_harm(cat("dir:", dir.file("leases")));
}

// EVIDENCE-OF: G2
TEST(AForkedChild, ThatReturnsFromMainReleasesNothingInPostgres) {
  if (!PostgresServer::missing().empty()) GTEST_SKIP() << PostgresServer::missing();
  PostgresServer server;
  ASSERT_TRUE(server.start());
  expect_no_harm(server.url());
}

// A good-bye on the wire would end the session that the parent has.
TEST(AForkedChild, EndsNoConnectionOfItsParent) {
  if (!PostgresServer::missing().empty()) GTEST_SKIP() << PostgresServer::missing();
  PostgresServer server({"log_disconnections=on"});
  ASSERT_TRUE(server.start());
  const TempDir dir;
  Child player(
      {.argv = {FORK_PLAYER, server.url(), dir.file("fork"), dir.file("go")},
       .env = {{"XDG_STATE_HOME", dir.file("state")}, {"XDG_CONFIG_HOME", dir.file("config")}}});
  ASSERT_TRUE(wait_until([&] { return player.out() == "ready\n"; }));
  const int before = count_of(server.log(), "disconnection:");
  write_text(dir.file("fork"), "");
  ASSERT_TRUE(wait_until([&] { return player.out().find("child ended: 0") != std::string::npos; }));
  // A session that nobody has ended is ended now, and told after all that were ended before it.
  ASSERT_EQ(run({.argv = {PostgresServer::program("psql"), "-XAtq", "-d", server.url(), "-c",
                          "select 1"}})
                .exit_code,
            0);
  ASSERT_TRUE(wait_until([&] { return count_of(server.log(), "disconnection:") > before; }));
  EXPECT_EQ(count_of(server.log(), "disconnection:"), before + 1) << server.log();
  write_text(dir.file("go"), "");
  const auto end = player.wait(Millis(30'000));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 0);
}

}  // namespace
}  // namespace stint::test
