// A fence is promised outward: it outlives a crash of the server, whatever the database does with
// other commits.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/guard_sql/session.h"

namespace stint::test {
namespace {

// A server of its own: it is killed.
class Durable : public ::testing::Test {
 protected:
  // Commits are written out after ten seconds, or when somebody waits for it.
  Durable() : server_({"synchronous_commit=off", "wal_writer_delay=10s"}) {}
  void SetUp() override {
    const auto started = server_.start();
    ASSERT_TRUE(started) << started.error().message;
  }
  net::Address address() const {
    net::Address out = address_of("postgres");
    out.hosts = {{.name = "127.0.0.1", .port = server_.port()}};
    return out;
  }
  std::string psql(const std::string& sql) {
    const Finished done = run(
        {.argv = {PostgresServer::program("psql"), "-XAtq", "-d",
                  cat("postgres://postgres@127.0.0.1:", server_.port(), "/postgres"), "-c", sql}},
        Millis(60'000));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  }

  PostgresServer server_;
};

// EVIDENCE-OF: G5
TEST_F(Durable, ASealOutlivesAKillWhereCommitsDoNotWaitForTheDisk) {
  {
    auto guard = guard::open_postgres_guard({.address = address()}, clock());
    ASSERT_TRUE(guard) << guard.error().message;
    ASSERT_TRUE((*guard)->install());
  }
  for (int next = 1; next <= 3; ++next) {
    psql(seal_sql("r", next));
    ASSERT_TRUE(server_.restart());
    ASSERT_EQ(psql("SELECT token FROM stint.fences"), cat(next, "\n")) << "killed right after it";
  }
}

}  // namespace
}  // namespace stint::test
