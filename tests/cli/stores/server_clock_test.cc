// The clock of a real server is set while leases run. Where the store's clock is a wall clock a
// step moves expiries as much; no token comes twice, no lease shows more than its ttl, nothing that
// was written as ended comes back, and the holders report it.
//
// The servers are started with the preloaded clocks of tests/support/asleep.h and not with
// libfaketime, whose semaphores fail a server that changes its user (PostgreSQL), and which calls
// itself while the allocator is made (Redis).
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/support/asleep.h"
#include "tests/support/servers.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;

struct Kind {
  std::string name;
  std::unique_ptr<Server> (*make)();
  std::string (*missing)();
};

template <typename T>
std::unique_ptr<Server> make() {
  return std::make_unique<T>();
}

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class ServerClock : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (const std::string why = GetParam().missing(); !why.empty()) GTEST_SKIP() << why;
    // The server may run as another user, who need not see where this was built.
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
    std::filesystem::copy_file(ASLEEP, folder_.file("preload.so"));
    server_->with_environment(machine_.here({}, folder_.file("preload.so")).env);
    const auto started = server_->start();
    ASSERT_TRUE(started) << started.error().message;
    stint_.use_store(server_->url());
    ASSERT_EQ(stint_({"run", "r", "--", "true"}).exit_code, 0);
    holder_ = std::make_unique<Child>(
        stint_.command({"run", "r", "--ttl", "3s", "--grace", "200ms", "--", "sh", "-c",
                        cat("while [ ! -e ", stop(), " ]; do sleep 0.05; done")}));
    ASSERT_TRUE(wait_until([&] { return stint_.held("r"); })) << holder_->err();
  }
  std::string stop() const { return stint_.dir().file("stop"); }
  std::uint64_t take(const std::string& resource, const std::string& ttl) const {
    const Finished done = stint_({"acquire", resource, "--ttl", ttl});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return parse_digits(trim(done.out)).value_or(0);
  }
  std::uint64_t left(const std::string& resource) const {
    return parse_digits(stint_.lease(resource, "remaining_ms")).value_or(0);
  }
  // The server's time as the ledger has it.
  void expect_stepped_by(std::int64_t ms) const {
    const std::string all = stint_({"events", "--json"}).out;
    std::string line;
    for (const std::string_view each : split(all, '\n')) {
      if (each.find("store_clock_stepped") != std::string_view::npos) line = each;
    }
    ASSERT_NE(line, "") << all;
    EXPECT_EQ(count_lines(all, "store_clock_stepped"), 1) << all;
    EXPECT_EQ(json_field(line, "resource"), "r");
    EXPECT_NEAR(static_cast<double>(std::stoll(json_field(line, "by_ms"))), static_cast<double>(ms),
                5'000)
        << line;
    EXPECT_NE(holder_->err().find("clock"), std::string::npos) << holder_->err();
  }

  TempDir folder_;
  Machine machine_{folder_.file("clock")};
  const std::unique_ptr<Server> server_ = GetParam().make();
  Stint stint_;
  std::unique_ptr<Child> holder_;
};

// EVIDENCE-OF: G1 G4 G6
TEST_P(ServerClock, SetAheadEndsLeasesEarlyAndNoTokenComesTwice) {
  const std::uint64_t first = take("q", "60s");
  ASSERT_EQ(stint_({"acquire", "q"}).exit_code, 11);
  machine_.step_wall(std::chrono::hours(1));
  const std::uint64_t second = take("q", "60s");
  EXPECT_GT(second, first);
  EXPECT_EQ(stint_({"renew", "q", "--token", cat(first)}).exit_code, 12);
  EXPECT_LE(left("q"), 60'000U);
  const auto exit = holder_->wait(milliseconds(6'000));
  ASSERT_TRUE(exit) << "it goes on: " << holder_->err();
  EXPECT_EQ(exit->code, 75) << holder_->err();
  expect_stepped_by(3'600'000);
  EXPECT_GT(take("r", "60s"), 2U);
}

// EVIDENCE-OF: G1 G3 G4
TEST_P(ServerClock, SetBackRevivesNothingAndProlongsNoLeaseBeyondItsTtl) {
  const std::uint64_t ended = take("ended", "60s");
  ASSERT_EQ(stint_({"release", "ended", "--token", cat(ended)}).exit_code, 0);
  const std::uint64_t over = take("over", "100ms");
  ASSERT_TRUE(wait_until([&] { return !stint_.held("over"); }));
  ASSERT_EQ(stint_({"run", "over", "--", "true"}).exit_code, 0);
  const std::uint64_t held = take("q", "60s");
  machine_.step_wall(std::chrono::hours(-1));
  EXPECT_TRUE(stint_.held("q"));
  EXPECT_LE(left("q"), 60'000U);
  EXPECT_EQ(stint_({"acquire", "q"}).exit_code, 11);
  EXPECT_EQ(stint_({"renew", "q", "--token", cat(held)}).exit_code, 0);
  EXPECT_LE(left("q"), 60'000U);
  for (const char* gone : {"ended", "over"}) EXPECT_FALSE(stint_.held(gone)) << gone;
  EXPECT_EQ(stint_({"renew", "over", "--token", cat(over)}).exit_code, 12);
  EXPECT_EQ(stint_({"renew", "ended", "--token", cat(ended)}).exit_code, 12);
  EXPECT_GT(take("ended", "60s"), ended);
  EXPECT_GT(take("over", "60s"), over + 1);
  // The holder goes on for more than a ttl, and a new lease runs out in its time.
  const MonoTime from = now();
  take("new", "1s");
  ASSERT_TRUE(wait_until([&] { return !stint_.held("new"); }));
  EXPECT_GE(now() - from, milliseconds(1'000));
  EXPECT_LE(now() - from, milliseconds(2'500));
  ASSERT_TRUE(wait_until([&] { return now() - from > milliseconds(3'500); }));
  EXPECT_TRUE(holder_->running()) << holder_->err();
  EXPECT_TRUE(stint_.held("r"));
  EXPECT_LE(left("r"), 3'000U);
  expect_stepped_by(-3'600'000);
  write_text(stop(), "x");
  const auto exit = holder_->wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << holder_->err();
  EXPECT_EQ(stint_.lease("r", "token"), "2");
}

INSTANTIATE_TEST_SUITE_P(Of, ServerClock,
                         ::testing::Values(Kind{"Postgres", make<PostgresServer>,
                                                PostgresServer::missing},
                                           Kind{"Redis", make<RedisServer>, RedisServer::missing}),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace stint::test
