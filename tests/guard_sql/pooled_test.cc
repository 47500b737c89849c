// Sessions that are handed on from one client to the next, as a pooler does: what the one left
// behind neither helps nor harms the other.
#include <gtest/gtest.h>

#include "base/text.h"
#include "bench/client.h"
#include "tests/guard_sql/session.h"
#include "tests/support/pgbouncer.h"

namespace stint::test {
namespace {

class SqlLeftOver : public ::testing::Test {
 protected:
  SqlLeftOver() : database_(guarded_database()), session_(database_) {
    session_.must("CREATE TABLE t (i int); CREATE TABLE u (i int)");
    for (const char* name : {"r", "s"}) {
      seal(session_, name, 4);
      seal(session_, name, 5);
    }
    EXPECT_TRUE(guard_of(database_)->protect("t", ResourceName::parse("r").value()));
    EXPECT_TRUE(guard_of(database_)->protect("u", ResourceName::parse("s").value()));
  }
  std::string with(const std::string& say, const std::string& write = kWrite) {
    const std::string state = session_.state_of(cat("BEGIN; ", say, "; ", write, "; COMMIT"));
    if (!state.empty()) session_.must("ROLLBACK");
    return state;
  }
  void expect_used_up() {
    const Answer answer = session_.run(kWrite);
    EXPECT_EQ(answer.state, "ST006") << answer.message;
    EXPECT_NE(answer.detail.find("one transaction"), std::string::npos) << answer.detail;
  }

  static constexpr const char* kWrite = "INSERT INTO t VALUES (1)";
  const std::string database_;
  Session session_;
};

// EVIDENCE-OF: G5
TEST_F(SqlLeftOver, NeverBeatsWhatAdmitWasShown) {
  for (const char* left : {"SET stint.token = '4'", "SET stint.token = '9'",
                           "SET stint.token = 'junk'", "SET stint.override = 'once upon a time'",
                           "SET stint.token = '4'; SET stint.resource = 'r'",
                           "SET stint.token = '4'; SET stint.generation = 'junk'"}) {
    session_.must(cat("RESET ALL; ", left));
    EXPECT_EQ(with("SELECT stint.admit('r', 5)"), "") << left;
  }
  EXPECT_EQ(session_.value("SELECT count(*) FROM stint.overrides"), "0");
  // Nor does it open what admit() refused.
  session_.must("RESET ALL; SET stint.token = '5'");
  EXPECT_EQ(with("SELECT stint.admit('r', 4)"), "ST001");
}

// The server does not tell who set it; that it counts for one transaction is what can be had.
TEST_F(SqlLeftOver, TokenIsUsedUpByOneTransaction) {
  for (const char* say :
       {"SET stint.token = '5'", "SELECT set_config('stint.token', '5', false)"}) {
    session_.must(say);
    EXPECT_EQ(session_.state_of(kWrite), "") << say;
    expect_used_up();
    expect_used_up();
    EXPECT_EQ(with("SET LOCAL stint.token = '5'"), "");
  }
  // Said within the transaction, it ends with that too.
  EXPECT_EQ(with("SET stint.token = '5'", cat(kWrite, "; INSERT INTO u VALUES (1)")), "");
  expect_used_up();
  // What a transaction that was undone has not used up, it gives back.
  session_.must("SET stint.token = '4'");
  EXPECT_EQ(session_.state_of(kWrite), "ST001");
  EXPECT_EQ(with("SET LOCAL stint.token = '5'"), "");
  expect_used_up();
}

TEST_F(SqlLeftOver, OverrideIsUsedUpByOneTransaction) {
  session_.must("SET stint.override = 'the disk is on fire'");
  EXPECT_EQ(session_.state_of(cat(kWrite, ";", kWrite)), "");
  expect_used_up();
  EXPECT_EQ(with("SET LOCAL stint.override = 'again'"), "");
  expect_used_up();
  EXPECT_EQ(with("SET LOCAL stint.token = '5'"), "");
  EXPECT_EQ(session_.value("SELECT string_agg(why, ', ' ORDER BY at) FROM stint.overrides"),
            "the disk is on fire, the disk is on fire, again");
}

// A name or a life that was left behind shuts out nobody who comes later.
TEST_F(SqlLeftOver, ResourceAndGenerationEndWithTheirToken) {
  session_.must(
      cat("SET stint.token = '5'; SET stint.resource = 's'; SET stint.generation = '", kLife, "'"));
  EXPECT_EQ(session_.state_of("INSERT INTO u VALUES (1)"), "");
  EXPECT_EQ(with("SET LOCAL stint.token = '5'"), "");
  EXPECT_EQ(session_.value("SELECT concat_ws(' ', current_setting('stint.resource', true),"
                           " current_setting('stint.generation', true))"),
            " ");
}

// The forms of the guide, again and again on one session.
TEST_F(SqlLeftOver, FormsOfTheGuideWorkFromPools) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(with("SET LOCAL stint.token = '5'"), "");
    EXPECT_EQ(with("SELECT set_config('stint.token', '5', true)"), "");
    EXPECT_EQ(with("SET LOCAL stint.token = '5'; SET LOCAL stint.resource = 'r'"), "");
    EXPECT_EQ(session_.state_of(cat("BEGIN; SELECT stint.admit('r', 5)")), "");
    EXPECT_EQ(session_.state_of(cat(kWrite, "; COMMIT")), "");
    // One token for the tables of two resources.
    EXPECT_EQ(with("SET LOCAL stint.token = '5'", cat(kWrite, "; INSERT INTO u VALUES (1)")), "");
    EXPECT_EQ(session_.state_of(kWrite), "ST006");
  }
}

// As a real pooler hands it on.
TEST_F(SqlLeftOver, IsNothingToTheNextClientOfAPooler) {
  if (!PgBouncer::missing().empty()) GTEST_SKIP() << PgBouncer::missing();
  PgBouncer pooler(server().port(), 1);
  const auto started = pooler.start();
  ASSERT_TRUE(started) << started.error().message;
  Session first(database_, "postgres", pooler.port());
  Session second(database_, "postgres", pooler.port());
  first.must("SET stint.token = '5'");
  first.must(kWrite);
  EXPECT_EQ(second.value("SELECT pg_backend_pid()"), first.value("SELECT pg_backend_pid()"));
  EXPECT_EQ(second.state_of(kWrite), "ST006");
  first.must("SET stint.token = '4'");
  EXPECT_EQ(second.state_of(cat("BEGIN; SELECT stint.admit('r', 5); ", kWrite, "; COMMIT")), "");
}

// ---- through a transaction pooler

TEST_F(SqlLeftOver, GuardIsInstalledSealedAndLookedAtThroughAPooler) {
  if (!PgBouncer::missing().empty()) GTEST_SKIP() << PgBouncer::missing();
  for (const char* ignored : {"", "options"}) {
    SCOPED_TRACE(ignored);
    PgBouncer pooler(server().port(), 2, ignored);
    const auto started = pooler.start();
    ASSERT_TRUE(started) << started.error().message;
    net::Address address = address_of(new_database());
    address.hosts = {{.name = "127.0.0.1", .port = pooler.port()}};
    auto opened =
        guard::open_postgres_guard({.address = address, .timeout = Millis(2'000)}, clock());
    ASSERT_TRUE(opened) << opened.error().message;
    auto& guard = **opened;
    EXPECT_TRUE(guard.install().value());
    Session writer(address.path, "postgres", pooler.port());
    writer.must("CREATE TABLE t (i int)");
    EXPECT_EQ(guard.protect("t", ResourceName::parse("r").value()).value(), 1);
    // The lease's own record is the word of its store.
    bench::Client store(cat("postgres://postgres@127.0.0.1:", server().port(), "/", address.path));
    const api::Grip grip = store.take("r");
    const guard::SealRequest request{.pass = {.resource = ResourceName::parse("r").value(),
                                              .token = grip.token,
                                              .generation = store.leases().generation(),
                                              .claim = {},
                                              .owner = {},
                                              .key = ""},
                                     .by_order = false,
                                     .adopt = {}};
    // It waits for older transactions, as long as it may, and says so.
    Session late(address.path);
    late.must("BEGIN; SELECT pg_advisory_xact_lock_shared(stint.lock_of('r'))");
    const auto waited = guard.seal(request, nullptr);
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().code, Code::Unavailable) << waited.error().message;
    EXPECT_NE(waited.error().message.find("older tokens"), std::string::npos)
        << waited.error().message;
    late.must("COMMIT");
    for (const bool already : {false, true}) {
      const auto sealed = guard.seal(request, nullptr);
      ASSERT_TRUE(sealed) << sealed.error().message;
      EXPECT_EQ(std::get<guard::Sealed>(*sealed).already, already);
    }
    EXPECT_EQ(guard.look().value().tables.size(), 1U);
    EXPECT_TRUE(guard.uninstall(true).value());
  }
}

}  // namespace
}  // namespace stint::test
