// Protected tables, installing and removing, a frozen client, renewals, and bad input.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "base/text.h"
#include "bench/client.h"
#include "tests/cli/stint.h"
#include "tests/guard_sql/session.h"

namespace stint::test {
namespace {

class Tables : public ::testing::Test {
 protected:
  Tables() : database_(guarded_database()), admin_(database_), guard_(guard_of(database_)) {
    seal(admin_, "r", 5);
  }
  int protect(const std::string& table, const std::string& resource = "r") {
    const auto made = guard_->protect(table, ResourceName::parse(resource).value());
    EXPECT_TRUE(made) << made.error().message;
    return made.value_or(-1);
  }
  // The SQLSTATE of a write in a transaction that shows this token.
  std::string with_token(const std::string& token, const std::string& sql) {
    const std::string state =
        admin_.state_of(cat("BEGIN; SET LOCAL stint.token = '", token, "'; ", sql, "; COMMIT"));
    if (!state.empty()) admin_.must("ROLLBACK");
    return state;
  }
  std::string count(const std::string& table) {
    return admin_.value(cat("SELECT count(*) FROM ", table));
  }

  std::string database_;
  Session admin_;
  std::unique_ptr<guard::PostgresGuard> guard_;
};

// EVIDENCE-OF: G5
TEST_F(Tables, RefuseEveryKindOfWriteWithoutACurrentToken) {
  admin_.must("CREATE TABLE t (i int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1)");
  EXPECT_EQ(protect("t"), 1);
  EXPECT_EQ(protect("public.t"), 0);
  const std::string writes[] = {
      "INSERT INTO t VALUES (2, 2) ON CONFLICT (i) DO UPDATE SET v = 3",
      "UPDATE t SET v = v + 1 WHERE false",
      "DELETE FROM t",
      "TRUNCATE t",
      "MERGE INTO t USING (SELECT 1 AS i) s ON t.i = s.i WHEN MATCHED "
      "THEN UPDATE SET v = 9",
      "WITH w AS (INSERT INTO t VALUES (7, 7) RETURNING i) SELECT * FROM w"};
  for (const std::string& write : writes) {
    EXPECT_EQ(admin_.state_of(write), "ST006") << write;
    EXPECT_EQ(with_token("", write), "ST006") << write;
    EXPECT_EQ(with_token("0", write), "ST006") << write;
    EXPECT_EQ(with_token("4", write), "ST001") << write;
    EXPECT_EQ(with_token("6", write), "ST008") << write;
    EXPECT_EQ(with_token("-5", write), "22023") << write;
    EXPECT_EQ(with_token("five", write), "22023") << write;
    EXPECT_EQ(with_token("99999999999999999999", write), "22023") << write;
    EXPECT_EQ(with_token("5'' OR true --", write), "22023") << write;
    EXPECT_EQ(count("t"), "1");
  }
  for (const std::string& write : writes) EXPECT_EQ(with_token("5", write), "") << write;
  // After a SET LOCAL the setting is empty, not absent.
  EXPECT_EQ(admin_.state_of("DELETE FROM t"), "ST006");
  EXPECT_EQ(
      admin_.state_of(cat("BEGIN; SET LOCAL stint.token = '5'; SET LOCAL stint.generation = '",
                          std::string(32, '2'), "'; DELETE FROM t; COMMIT")),
      "ST008");
}

TEST_F(Tables, TakeTheTokenThatAdmitWasShownForTheirResource) {
  seal(admin_, "s", 9);
  admin_.must("CREATE TABLE t (i int); CREATE TABLE u (i int)");
  protect("t");
  protect("u", "s");
  const std::string both = "INSERT INTO t VALUES (1); INSERT INTO u VALUES (1); COMMIT";
  EXPECT_EQ(
      admin_.state_of(cat("BEGIN; SELECT stint.admit('r', 5); SELECT stint.admit('s', 9);", both)),
      "");
  EXPECT_EQ(admin_.state_of(cat("BEGIN; SELECT stint.admit('r', 5); ", both)), "ST006");
  admin_.must("ROLLBACK");
  EXPECT_EQ(count("u"), "1");
  // What was undone does not count.
  EXPECT_EQ(admin_.state_of("BEGIN; SAVEPOINT s; SELECT stint.admit('r', 5); ROLLBACK TO s; "
                            "INSERT INTO t VALUES (2); COMMIT"),
            "ST006");
  admin_.must("ROLLBACK");
}

// EVIDENCE-OF: G5
TEST_F(Tables, GuardEveryPartitionAlsoOneThatComesLater) {
  admin_.must("DROP EVENT TRIGGER stint_guard_follow");
  admin_.must(
      "CREATE TABLE p (i int, v int) PARTITION BY RANGE (i);"
      "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (i);"
      "CREATE TABLE p11 PARTITION OF p1 FOR VALUES FROM (0) TO (5)");
  EXPECT_EQ(protect("p"), 3);
  for (const char* table : {"p", "p1", "p11"}) {
    for (const std::string& write : {cat("INSERT INTO ", table, " VALUES (1, 1)"),
                                     cat("TRUNCATE ", table), cat("DELETE FROM ", table)}) {
      EXPECT_EQ(admin_.state_of(write), "ST006") << write;
      EXPECT_EQ(with_token("4", write), "ST001") << write;
    }
  }
  EXPECT_EQ(with_token("5", "INSERT INTO p VALUES (1, 1), (2, 2)"), "");
  EXPECT_TRUE(guard_->look().value().problems.empty());
  // Later ones, made and attached.
  admin_.must(
      "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);"
      "CREATE TABLE p3 (i int, v int); INSERT INTO p3 VALUES (21, 1);"
      "ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (20) TO (30)");
  for (const std::string& write :
       {std::string("INSERT INTO p2 VALUES (11, 1)"), std::string("UPDATE p3 SET v = 2"),
        std::string("DELETE FROM p3")}) {
    EXPECT_EQ(admin_.state_of(write), "ST006") << write;
    EXPECT_EQ(with_token("4", write), "ST001") << write;
  }
  EXPECT_EQ(with_token("5", "INSERT INTO p2 VALUES (11, 1); UPDATE p3 SET v = 2"), "");
  // TRUNCATE has no row trigger: it is said.
  const auto said = guard_->look().value().problems;
  ASSERT_EQ(said.size(), 2U);
  EXPECT_NE(said[0].find("TRUNCATE of it is not checked"), std::string::npos) << said[0];
  EXPECT_EQ(protect("p"), 2);
  EXPECT_TRUE(guard_->look().value().problems.empty());
  EXPECT_EQ(admin_.state_of("TRUNCATE p3"), "ST006");
  // A part is not freed alone.
  EXPECT_FALSE(guard_->unprotect("p2"));
  EXPECT_TRUE(guard_->unprotect("p"));
  EXPECT_EQ(admin_.state_of("INSERT INTO p VALUES (1, 1); TRUNCATE p3; DELETE FROM p2"), "");
}

// It was told as if TRUNCATE alone were open.
TEST_F(Tables, ThatInheritLaterAreSaidToBeOpen) {
  admin_.must("DROP EVENT TRIGGER stint_guard_follow");
  admin_.must("CREATE TABLE t (i int)");
  protect("t");
  admin_.must("CREATE TABLE child () INHERITS (t)");
  EXPECT_EQ(admin_.state_of("INSERT INTO child VALUES (1)"), "");
  const auto state = guard_->look().value();
  ASSERT_EQ(state.problems.size(), 1U);
  EXPECT_NE(state.problems[0].find("no write that names it is checked"), std::string::npos)
      << state.problems[0];
  EXPECT_EQ(protect("t"), 1);
  EXPECT_EQ(admin_.state_of("INSERT INTO child VALUES (1)"), "ST006");
}

TEST_F(Tables, SayWhenATriggerIsDisabled) {
  admin_.must("CREATE TABLE t (i int)");
  protect("t");
  admin_.must("ALTER TABLE t DISABLE TRIGGER stint_guard");
  const auto state = guard_->look().value();
  ASSERT_EQ(state.problems.size(), 1U);
  EXPECT_NE(state.problems[0].find("disabled"), std::string::npos);
}

TEST_F(Tables, AreOverriddenByTheirOwnerAloneAndThatIsOnRecord) {
  admin_.must("CREATE TABLE t (i int); CREATE ROLE other LOGIN; GRANT ALL ON t TO other");
  protect("t");
  Session other(database_, "other");
  const std::string late =
      "SET LOCAL stint.override = 'the disk is on fire'; INSERT INTO t VALUES (1)";
  EXPECT_EQ(other.state_of(cat("BEGIN; ", late)), "42501");
  other.must("ROLLBACK");
  EXPECT_EQ(other.state_of("INSERT INTO t VALUES (1)"), "ST006");
  EXPECT_EQ(other.state_of("BEGIN; SET LOCAL stint.token = '5'; INSERT INTO t VALUES (1); COMMIT"),
            "");
  // Who writes may not seal, nor read or forge what is on record.
  EXPECT_EQ(other.state_of(seal_sql("r", 99)), "42501");
  EXPECT_EQ(other.state_of("UPDATE stint.fences SET token = 1"), "42501");
  EXPECT_EQ(other.state_of("INSERT INTO stint.overrides VALUES (now())"), "42501");
  admin_.must(cat("BEGIN; ", late, "; COMMIT"));
  const Answer record =
      admin_.must("SELECT kind, resource, relation, operation, role, why FROM stint.overrides");
  ASSERT_EQ(record.rows.size(), 1U);
  EXPECT_EQ(record.rows[0], (std::vector<std::string>{"override", "r", "public.t", "INSERT",
                                                      "postgres", "the disk is on fire"}));
  admin_.must("DROP OWNED BY other; DROP ROLE other");
}

TEST_F(Tables, LetThroughAndRecordUnderWarn) {
  admin_.must("CREATE TABLE t (i int)");
  protect("t");
  EXPECT_EQ(admin_.state_of("BEGIN; SET LOCAL stint.guard = 'warn'; SET LOCAL stint.token = '4'; "
                            "INSERT INTO t VALUES (1); COMMIT"),
            "");
  EXPECT_EQ(count("t"), "1");
  EXPECT_EQ(admin_.value("SELECT concat_ws(' ', kind, token, relation, operation, role) "
                         "FROM stint.overrides"),
            "warn 4 public.t INSERT postgres");
  // By hand, in the same transaction: no statement of a table.
  admin_.must(
      "TRUNCATE stint.overrides; BEGIN; SET LOCAL stint.guard = 'warn'; SET LOCAL stint.token = "
      "'4'; UPDATE t SET i = 2; SELECT stint.admit('r', 4); COMMIT");
  EXPECT_EQ(admin_.value("SELECT string_agg(concat_ws(' ', token, relation, operation), ', ' "
                         "ORDER BY at) FROM stint.overrides"),
            "4 public.t UPDATE, 4");
}

TEST_F(Tables, OfHostileNamesAreProtectedAndNothingElseIsDone) {
  admin_.must(
      "CREATE SCHEMA \"s\"\"; DROP TABLE keep; --\"; CREATE TABLE keep (i int);"
      "CREATE TABLE \"s\"\"; DROP TABLE keep; --\".\"t'; $f$ \"\" x\" (i int)");
  const std::string name = "\"s\"\"; DROP TABLE keep; --\".\"t'; $f$ \"\" x\"";
  const std::string resource = "it's \"a\" $1 %L %s \\ resource";
  EXPECT_EQ(protect(name, resource), 1);
  EXPECT_EQ(admin_.state_of(cat("INSERT INTO ", name, " VALUES (1)")), "ST006");
  ASSERT_EQ(guard_->look().value().tables.size(), 1U);
  EXPECT_EQ(guard_->look().value().tables[0].resource, resource);
  for (const char* bad : {"keep; DROP TABLE keep", "", "nowhere", "a.b.c.d", "\"keep",
                          "stint.fences", "pg_class", "keep_view", "'keep'"}) {
    admin_.must("CREATE OR REPLACE VIEW keep_view AS SELECT * FROM keep");
    const auto answer = guard_->protect(bad, ResourceName::parse("r").value());
    ASSERT_FALSE(answer) << bad;
    EXPECT_EQ(answer.error().code, Code::Invalid) << bad << ": " << answer.error().message;
  }
  EXPECT_EQ(count("keep"), "0");
  EXPECT_FALSE(guard_->protect(name, ResourceName::parse("another").value()));
  EXPECT_EQ(guard_->unprotect(name).value(), 1);
  EXPECT_EQ(admin_.state_of(cat("INSERT INTO ", name, " VALUES (1)")), "");
}

// ---- installing and removing

TEST(SqlInput, ThatMakesNoSenseIsRefusedAndChangesNothing) {
  Session session(guarded_database());
  for (const char* sql :
       {"SELECT stint.admit('', 1)", "SELECT stint.admit(repeat('x', 513), 1)",
        "SELECT stint.admit(E'a\\nb', 1)", "SELECT stint.admit('r', -1)",
        "SELECT stint.admit('r', 9007199254740992)", "SELECT stint.admit('r', 1, 'G')",
        "SELECT stint.admit('r', 1, mode => 'twice')", "SELECT stint.admit(NULL, 1)",
        "SELECT stint.admit('r', 1, mode => NULL)", "SELECT stint.seal('r', 1, '')",
        "SELECT stint.admit_all(ARRAY['a'], ARRAY[1, 2])", "SELECT stint.admit_all(NULL, NULL)",
        "SELECT stint.admit_all('{}', '{}')", "SELECT stint.admit_all(NULL, ARRAY[1])",
        "SELECT stint.seal('r', 1, NULL)", "SELECT stint.seal('r', 1, 'ff', 1, true)"}) {
    EXPECT_EQ(session.state_of(sql), "22023") << sql;
  }
  EXPECT_EQ(session.state_of("SELECT stint.admit('r', NULL)"), "ST006");
  EXPECT_EQ(session.state_of("SELECT stint.seal('r', 0, repeat('1', 32))"), "ST006");
  EXPECT_EQ(session.value("SELECT count(*) FROM stint.fences"), "0");
}

// What is not said is no: neither an adoption, nor an order.
TEST(SqlInput, ThatIsNullGivesNobodyMore) {
  Session session(guarded_database());
  seal(session, "r", 5);
  const std::string other(32, '2');
  for (const char* step : {"announce_seal", "seal"}) {
    const std::string begin = cat("SELECT stint.", step, "('r', 6, '");
    EXPECT_EQ(session.state_of(cat(begin, other, "', 6, true, adopt => NULL)")), "ST005") << step;
    EXPECT_EQ(session.state_of(cat(begin, kLife, "', 6, false, by_order => NULL)")), "ST004")
        << step;
    EXPECT_EQ(session.state_of(cat(begin, kLife, "', 6, NULL, by_order => NULL)")), "ST004")
        << step;
  }
  EXPECT_EQ(session.value("SELECT concat_ws(' ', token, generation) FROM stint.fences"),
            cat("5 ", kLife));
  EXPECT_EQ(session.value("SELECT count(*) FROM stint.sealing"), "0");
}

// ---- time

// A client frozen inside its transaction: the server ends it.
TEST(SqlFrozen, ClientKeepsASealWaitingNoLongerThanItsTime) {
  const std::string database = guarded_database();
  Session admin(database);
  admin.must("CREATE TABLE t (i int)");
  seal(admin, "r", 1);
  TempDir dir;
  // psql reads its commands from a pipe that stays open.
  const std::string psql =
      cat(PostgresServer::program("psql"),
          " -XAtq -d postgres://postgres@127.0.0.1:", server().port(), "/", database);
  Child child(
      {.argv = {"sh", "-c",
                cat("(echo \"BEGIN; SELECT stint.admit('r', 1, remaining => interval '1 s'); "
                    "INSERT INTO t VALUES (1); SELECT 'ready';\"; sleep 60; echo 'COMMIT;') | ",
                    psql)}});
  ASSERT_TRUE(wait_until([&] { return child.out().find("ready") != std::string::npos; }))
      << child.err();
  child.signal_group(SIGSTOP);
  const MonoTime before = now();
  seal(admin, "r", 2);
  const auto waited = std::chrono::duration_cast<Millis>(now() - before);
  child.signal_group(SIGCONT);
  EXPECT_LT(waited, Millis(20'000)) << "the client stays frozen for a minute";
  EXPECT_GE(waited, Millis(100));
  EXPECT_EQ(admin.value("SELECT count(*) FROM t"), "0");
  std::printf("a seal waited %lld ms for a frozen client with 1 s left\n",
              static_cast<long long>(waited.count()));
}

TEST(SqlTime, IsNeverUnlimitedAndNeverLongerThanTheSessionsOwn) {
  Session session(guarded_database());
  seal(session, "r", 1);
  const auto limits = [&](const std::string& admit) {
    session.must("BEGIN");
    session.must(admit);
    const std::string out = cat(session.value("SHOW statement_timeout"), ' ',
                                session.value("SHOW idle_in_transaction_session_timeout"));
    session.must("COMMIT");
    return out;
  };
  EXPECT_EQ(limits("SELECT stint.admit('r', 1)"), "30s 30s");
  EXPECT_EQ(limits("SELECT stint.admit('r', 1, interval '7 s')"), "7s 7s");
  EXPECT_EQ(limits("SELECT stint.admit('r', 1, interval '0')"), "100ms 100ms");
  EXPECT_EQ(limits("SELECT stint.admit('r', 1, interval '-1 h')"), "100ms 100ms");
  session.must("SET statement_timeout = '2min'; SET idle_in_transaction_session_timeout = '5s'");
  EXPECT_EQ(limits("SELECT stint.admit('r', 1)"), "30s 5s");
  EXPECT_EQ(session.value("SHOW statement_timeout"), "2min");
  session.must("SET statement_timeout = 0");
  EXPECT_EQ(limits("SELECT stint.admit('r', 1)"), "30s 5s");
  session.must("SET statement_timeout = '5s'; SET idle_in_transaction_session_timeout = 0");
  EXPECT_EQ(limits("SELECT stint.admit('r', 1)"), "5s 30s");
}

// Shown again, as by the triggers of protected tables, a token changes no limit that there is;
// where there is none any more it sets them again.
TEST(SqlTime, StaysWhenTheTokenIsShownAgain) {
  Session session(guarded_database());
  seal(session, "r", 1);
  const auto limits = [&] {
    return cat(session.value("SHOW statement_timeout"), ' ',
               session.value("SHOW idle_in_transaction_session_timeout"));
  };
  const std::string admit = "SELECT stint.admit('r', 1)";
  session.must("BEGIN");
  session.must("SELECT stint.admit('r', 1, interval '7 s')");
  session.must(admit);
  EXPECT_EQ(limits(), "7s 7s");
  session.must("SET LOCAL statement_timeout = '50s'");
  session.must(admit);
  EXPECT_EQ(limits(), "50s 7s");
  session.must(
      "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0");
  session.must(admit);
  EXPECT_EQ(limits(), "30s 30s");
  session.must("COMMIT");
  EXPECT_EQ(limits(), "0 0");
}

// A long guarded transaction holds own/R; a renewal writes alive/R.
TEST(SqlOwn, RenewalsAreNotBlockedAndTheNextHolderWaitsForTheTransaction) {
  const std::string database = guarded_database();
  bench::Client store(cat("postgres://postgres@127.0.0.1:", server().port(), "/", database));
  const api::Grip grip = store.take("r");
  Session writer(database);
  Session second(database);
  const std::string admit = cat("SELECT stint.admit('r', ", grip.token.number(), ", '",
                                store.leases().generation().hex(), "')");
  writer.must("BEGIN");
  writer.must(admit);
  second.must("BEGIN");
  second.must(admit);  // side by side
  const MonoTime before = now();
  for (int i = 0; i < 20; ++i) store.renew(grip);
  EXPECT_LT(now() - before, Millis(20'000)) << "the transactions last longer";
  // The lease's own time is the transaction's.
  EXPECT_NE(writer.value("SHOW idle_in_transaction_session_timeout"), "30s");
  store.release(grip);
  std::thread next([&] { store.release(store.wait_for("r")); });
  Session watcher(database);
  EXPECT_TRUE(wait_until([&] {
    return watcher.value(
               "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == "t";
  }));
  writer.must("COMMIT");
  second.must("COMMIT");
  next.join();
  EXPECT_EQ(writer.state_of(admit), "ST001");
}

// Writers of a lease that has ended do not stand side by side: a shared lock passes by whoever
// waits for a stronger one, so that they could keep the next acquire waiting for ever.
TEST(SqlOwn, WhoIsLateStandsInTheQueueAlone) {
  const std::string database = guarded_database();
  bench::Client store(cat("postgres://postgres@127.0.0.1:", server().port(), "/", database));
  store.release(store.take("r"));
  Session writer(database);
  Session second(database);
  Session watcher(database);
  const std::string admit =
      cat("SELECT stint.admit('r', 1, '", store.leases().generation().hex(), "')");
  writer.must("BEGIN");
  writer.must(admit);
  second.must("BEGIN");
  second.send(admit);
  EXPECT_TRUE(blocked(second, watcher));
  writer.must("COMMIT");
  EXPECT_EQ(second.answer().state, "");
  second.must("COMMIT");
}

// Its tokens were issued: they end at the floor.
TEST(SqlOwn, ATokenOfAForgottenResourceIsNotCalledNeverIssued) {
  const std::string database = guarded_database();
  bench::Client store(cat("postgres://postgres@127.0.0.1:", server().port(), "/", database));
  const api::Grip grip = store.take("r");
  store.release(grip);
  ASSERT_TRUE(store.leases().forget(*ResourceName::parse("r")));
  Session writer(database);
  const auto state = [&](std::uint64_t token) {
    return writer.state_of(
        cat("SELECT stint.admit('r', ", token, ", '", store.leases().generation().hex(), "')"));
  };
  EXPECT_EQ(state(grip.token.number()), "ST004");
  EXPECT_EQ(state(grip.token.number() + 1000), "ST003");
}

// Both have it by the same token, and write on after its time: nobody has taken over.
TEST(SqlOwn, TwoLateWritersOfOneTokenDoNotWaitForEachOther) {
  const std::string database = guarded_database();
  bench::Client store(cat("postgres://postgres@127.0.0.1:", server().port(), "/", database));
  const api::Grip grip = store.take("r");
  const std::string admit = cat("SELECT stint.admit('r', ", grip.token.number(), ", '",
                                store.leases().generation().hex(), "')");
  Session writer(database);
  Session second(database);
  for (Session* one : {&writer, &second}) {
    one->must("BEGIN");
    one->must(admit);
  }
  // Its time is over: as the store would write it.
  Session admin(database);
  admin.must(
      "UPDATE stint.record SET fires_at = clock_timestamp() - interval '1 s'"
      " WHERE key = 'alive/r'::bytea");
  EXPECT_EQ(writer.state_of(admit), "");
  EXPECT_EQ(second.state_of(admit), "");
  writer.must("COMMIT");
  second.must("COMMIT");
}

// The store is in a schema of its own, which who writes does not see.
TEST(SqlOwn, InAnotherSchemaIsTheCheckForEverybodyAndStaysItWhenInstalledAgain) {
  const std::string database = new_database();
  net::Address address = address_of(database);
  address.options["schema"] = "leases";
  const auto guard_in = [&](const net::Address& at) {
    return std::move(*guard::open_postgres_guard({.address = at}, clock()));
  };
  ASSERT_TRUE(guard_in(address)->install().value());
  bench::Client store(
      cat("postgres://postgres@127.0.0.1:", server().port(), "/", database, "?schema=leases"));
  store.release(store.take("r"));
  const api::Grip grip = store.take("r");
  Session admin(database);
  const std::string role = cat("plain_", database);
  admin.must(cat("CREATE ROLE ", role, " LOGIN"));
  Session writer(database, role);
  const auto state = [&](std::uint64_t token) {
    return writer.state_of(cat("SELECT stint.admit('r', ", token, ")"));
  };
  const auto check = [&] {
    EXPECT_EQ(state(grip.token.number()), "");
    EXPECT_EQ(state(grip.token.number() - 1), "ST001");
    EXPECT_TRUE(guard_of(database)->look().value().store_is_here);
  };
  check();
  // Again, and without a word about the schema: no change.
  EXPECT_FALSE(guard_of(database)->install().value());
  check();
  address.options["schema"] = "stint";
  const auto other = guard_in(address)->install();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::Invalid) << other.error().message;
  EXPECT_EQ(guard_in(address)->look().value().problems.size(), 1U);
  check();
}

}  // namespace
}  // namespace stint::test
