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
        "parent holding: 1\n", "parent sees: 1 1\n", "parent release: 1\n"}) {
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

}  // namespace
}  // namespace stint::test
