// Ways around the guard in PostgreSQL that an honest program may come upon: other encodings and
// collations, statements that reach a protected table from elsewhere, transactions that end or are
// undone in parts.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/guard_sql/session.h"

namespace stint::test {
namespace {

TEST(SqlAround, ANameBeyondAsciiInADatabaseOfAnotherEncoding) {
  const std::string database = cat("latin_", new_database());
  Session("postgres")
      .must(cat("CREATE DATABASE ", database,
                " ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"));
  const auto guard = guard_of(database);
  ASSERT_TRUE(guard->install());
  Session session(database);
  session.must("SET client_encoding = 'UTF8'; CREATE TABLE t (i int)");
  seal(session, "caf\u00e9", 5);
  ASSERT_TRUE(guard->protect("t", ResourceName::parse("caf\u00e9").value()));
  const auto state = guard->look();
  ASSERT_TRUE(state) << state.error().message;
  ASSERT_EQ(state->tables.size(), 1U);
  EXPECT_EQ(state->tables[0].resource, "caf\u00e9");
  EXPECT_EQ(session.state_of("INSERT INTO t VALUES (1)"), "ST006");
  EXPECT_EQ(session.state_of("BEGIN; SELECT stint.admit('caf\u00e9', 5); INSERT INTO t VALUES (1);"
                             "COMMIT"),
            "");
  EXPECT_TRUE(guard->uninstall(true).value());
}

TEST(SqlAround, ANameFromAColumnWithACollationOfItsOwn) {
  Session session(guarded_database());
  session.must(
      "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = "
      "false); CREATE TABLE job (resource text COLLATE \"POSIX\", loose text COLLATE any_case);"
      "INSERT INTO job VALUES ('r', 'R')");
  seal(session, "r", 5);
  for (const char* level : {"READ COMMITTED", "REPEATABLE READ"}) {
    session.must(cat("BEGIN ISOLATION LEVEL ", level));
    EXPECT_EQ(session.state_of("SELECT stint.admit(resource, 5) FROM job"), "") << level;
    EXPECT_EQ(session.state_of("SELECT stint.admit(resource, 4) FROM job"), "ST001") << level;
    session.must("ROLLBACK");
    // Another name, however its column compares.
    EXPECT_NE(session.state_of("SELECT stint.admit(loose, 5) FROM job"), "") << level;
  }
  EXPECT_EQ(
      session.state_of(cat("SELECT stint.seal(resource, 6, '", kLife, "', 6, true) FROM job")), "");
}

// A part may be protected before the whole, or brought in with a protection of its own.
TEST(SqlAround, APartThatWasProtectedByItself) {
  const std::string database = guarded_database();
  const auto guard = guard_of(database);
  Session session(database);
  seal(session, "r", 5);
  session.must(
      "CREATE TABLE p (i int) PARTITION BY RANGE (i);"
      "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (i);"
      "CREATE TABLE q (i int) PARTITION BY RANGE (i)");
  const ResourceName r = ResourceName::parse("r").value();
  for (const char* table : {"p1", "q", "p"}) {
    const auto made = guard->protect(table, r);
    ASSERT_TRUE(made) << table << ": " << made.error().message;
    EXPECT_EQ(*made, 1) << table;
  }
  session.must("ALTER TABLE p ATTACH PARTITION q FOR VALUES FROM (10) TO (20)");
  session.must(
      "CREATE TABLE p11 PARTITION OF p1 FOR VALUES FROM (0) TO (5);"
      "CREATE TABLE q1 PARTITION OF q FOR VALUES FROM (10) TO (15)");
  for (const std::string& write :
       {std::string("INSERT INTO p VALUES (1)"), std::string("INSERT INTO p11 VALUES (1)"),
        std::string("INSERT INTO q VALUES (11)"), std::string("INSERT INTO q1 VALUES (11)")}) {
    EXPECT_EQ(session.state_of(write), "ST006") << write;
    EXPECT_EQ(session.state_of(cat("BEGIN; SET LOCAL stint.token = '5'; ", write, "; COMMIT")), "");
  }
  EXPECT_TRUE(guard->unprotect("p"));
  EXPECT_EQ(session.value("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'stint%'"), "0");
  EXPECT_EQ(session.state_of("INSERT INTO p11 VALUES (2); INSERT INTO q1 VALUES (12)"), "");
}

// Numbers compare only within their resource: who says whose token it is cannot pass with it
// elsewhere.
TEST(SqlAround, ATokenThatNamesItsResourceOpensNoOther) {
  const std::string database = guarded_database();
  const auto guard = guard_of(database);
  Session session(database);
  session.must("CREATE TABLE t (i int); CREATE TABLE u (i int)");
  for (const char* name : {"r", "s"}) seal(session, name, 5);
  ASSERT_TRUE(guard->protect("t", ResourceName::parse("r").value()));
  ASSERT_TRUE(guard->protect("u", ResourceName::parse("s").value()));
  const std::string begin =
      "BEGIN; SET LOCAL stint.token = '5'; SET LOCAL stint.resource = 'r'; INSERT INTO t VALUES "
      "(1);";
  EXPECT_EQ(session.state_of(cat(begin, "COMMIT")), "");
  EXPECT_EQ(session.state_of(cat(begin, "INSERT INTO u VALUES (1); COMMIT")), "ST006");
  session.must("ROLLBACK");
  EXPECT_EQ(session.state_of(cat(begin,
                                 "SELECT stint.admit('s', 5); INSERT INTO u VALUES (1);"
                                 "COMMIT")),
            "");
  EXPECT_EQ(session.value("SELECT (SELECT count(*) FROM t) || ' ' || (SELECT count(*) FROM u)"),
            "2 1");
}

// Rows of a partition that came later are asked about only where the statement has not passed: by
// its token, or for as long as somebody says that it need not.
TEST(SqlAround, WhatAnOwnerOrWarnLetThroughOpensNothingMore) {
  const std::string database = guarded_database();
  const auto guard = guard_of(database);
  Session session(database);
  // As where the guard is not told of it.
  session.must(
      "DROP EVENT TRIGGER stint_guard_follow; CREATE TABLE p (i int) PARTITION BY RANGE (i)");
  seal(session, "r", 5);
  ASSERT_TRUE(guard->protect("p", ResourceName::parse("r").value()));
  session.must("CREATE TABLE later PARTITION OF p FOR VALUES FROM (0) TO (10)");
  for (const auto& [say, unsay] :
       {std::pair("SET LOCAL stint.override = 'fire'", "SET LOCAL stint.override = ''"),
        {"SET LOCAL stint.guard = 'warn'", "SET LOCAL stint.guard = ''"}}) {
    session.must(cat("BEGIN; ", say, "; INSERT INTO p SELECT generate_series(1, 3)"));
    EXPECT_EQ(session.value("SELECT count(*) FROM stint.overrides"), "1") << say;
    EXPECT_EQ(session.state_of(cat(unsay, "; INSERT INTO later VALUES (4)")), "ST006") << say;
    session.must("ROLLBACK");
  }
  session.must("BEGIN; SET LOCAL stint.token = '5'; INSERT INTO p VALUES (1)");
  session.must("SET LOCAL stint.token = ''; INSERT INTO later VALUES (2); COMMIT");
}

class SqlAroundTable : public ::testing::Test {
 protected:
  SqlAroundTable() : database_(guarded_database()), session_(database_) {
    session_.must(
        "CREATE TABLE parent (i int PRIMARY KEY); INSERT INTO parent VALUES (1), (2);"
        "CREATE TABLE t (i int, p int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);"
        "INSERT INTO t VALUES (1, 1)");
    seal(session_, "r", 5);
    EXPECT_TRUE(guard_of(database_)->protect("t", ResourceName::parse("r").value()));
  }
  std::string rows() { return session_.value("SELECT string_agg(i || ' ' || p, ', ') FROM t"); }
  // As the token's holder, and as one who was overtaken; then as one who shows none.
  void expect_guarded(const std::string& write) {
    const std::string before = rows();
    EXPECT_EQ(session_.state_of(write), "ST006") << write;
    EXPECT_EQ(session_.state_of(cat("BEGIN; SET LOCAL stint.token = '4'; ", write, "; COMMIT")),
              "ST001")
        << write;
    session_.must("ROLLBACK");
    EXPECT_EQ(rows(), before) << write;
    EXPECT_EQ(session_.state_of(cat("BEGIN; SET LOCAL stint.token = '5'; ", write, "; COMMIT")), "")
        << write;
  }

  const std::string database_;
  Session session_;
};

TEST_F(SqlAroundTable, IsGuardedWhereverTheStatementComesFrom) {
  session_.must(
      "CREATE VIEW v AS SELECT * FROM t; CREATE TABLE other (i int);"
      "CREATE RULE away AS ON INSERT TO other DO INSTEAD INSERT INTO t VALUES (new.i, 2);"
      "CREATE FUNCTION f() RETURNS void LANGUAGE sql SECURITY DEFINER AS"
      " 'INSERT INTO t VALUES (4, 2)';"
      "CREATE TABLE origin (i int); CREATE FUNCTION g() RETURNS trigger LANGUAGE plpgsql AS"
      " 'BEGIN INSERT INTO t VALUES (new.i, 2); RETURN new; END';"
      "CREATE TRIGGER g AFTER INSERT ON origin FOR EACH ROW EXECUTE FUNCTION g();"
      "CREATE TABLE slow (i int); CREATE CONSTRAINT TRIGGER h AFTER INSERT ON slow DEFERRABLE"
      " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION g();"
      "PREPARE put(int) AS INSERT INTO t VALUES ($1, 2)");
  for (const char* write :
       {"INSERT INTO v VALUES (2, 2)", "UPDATE v SET i = 3 WHERE i = 2",
        "INSERT INTO other VALUES (5)", "SELECT f()", "INSERT INTO origin VALUES (6)",
        "INSERT INTO slow VALUES (7)", "EXECUTE put(8)",
        "COPY t FROM PROGRAM 'echo 9,2' WITH (FORMAT csv)",
        "DO 'BEGIN INSERT INTO t VALUES (10, 2); END'", "UPDATE parent SET i = 3 WHERE i = 1",
        "DELETE FROM parent WHERE i = 3", "TRUNCATE parent CASCADE"}) {
    expect_guarded(write);
  }
  EXPECT_EQ(rows(), "");
}

// What ends a transaction, or undoes a part of it, takes the leave away with it.
TEST_F(SqlAroundTable, ALeaveEndsWithWhatItWasGivenIn) {
  const auto ends = [&](const std::string& sql) {
    EXPECT_EQ(session_.state_of(cat(sql, "; INSERT INTO t VALUES (2, 2); COMMIT")), "ST006") << sql;
    session_.must("ROLLBACK");
  };
  const std::string admit = "SELECT stint.admit('r', 5)";
  ends(cat("BEGIN; ", admit, "; COMMIT AND CHAIN"));
  ends(cat("BEGIN; ", admit, "; ROLLBACK AND CHAIN"));
  ends(cat("BEGIN; SAVEPOINT a; ", admit, "; ROLLBACK TO a"));
  ends(cat("BEGIN; SAVEPOINT a; SAVEPOINT b; ", admit, "; RELEASE b; ROLLBACK TO a"));
  ends(
      "BEGIN; DO 'BEGIN PERFORM stint.admit(''r'', 5); PERFORM 1 / 0; EXCEPTION WHEN OTHERS THEN"
      " NULL; END'");
  ends("BEGIN; DO 'BEGIN PERFORM stint.admit(''r'', 4); EXCEPTION WHEN OTHERS THEN NULL; END'");
  ends(cat("BEGIN; ", admit, "; RESET ALL"));
  session_.must(
      "CREATE PROCEDURE two() LANGUAGE plpgsql AS 'BEGIN PERFORM stint.admit(''r'', 5);"
      " INSERT INTO t VALUES (3, 2); COMMIT; INSERT INTO t VALUES (4, 2); END'");
  EXPECT_EQ(session_.state_of("CALL two()"), "ST006");
  EXPECT_EQ(rows(), "1 1, 3 2");
  // What is kept is kept.
  session_.must(cat("BEGIN; SAVEPOINT a; ", admit, "; RELEASE a; INSERT INTO t VALUES (5, 2)"));
  Session sealer(database_);
  Session watcher(database_);
  sealer.send(seal_sql("r", 6));
  EXPECT_TRUE(blocked(sealer, watcher));
  session_.must("COMMIT");
  EXPECT_EQ(sealer.answer().state, "");
}

// No session is there whose time could run out: the seal waits for whoever ends it.
TEST_F(SqlAroundTable, APreparedTransactionKeepsASealWaiting) {
  Session sealer(database_);
  int token = 5;
  for (const char* end : {"COMMIT PREPARED 'late'", "ROLLBACK PREPARED 'late'"}) {
    session_.must(cat("BEGIN; SELECT stint.admit('r', ", token, "); INSERT INTO t VALUES (", token,
                      ", 2); PREPARE TRANSACTION 'late'"));
    sealer.send(seal_sql("r", ++token));
    EXPECT_TRUE(blocked(sealer, session_));
    session_.must(end);
    EXPECT_EQ(sealer.answer().state, "");
  }
  EXPECT_EQ(rows(), "1 1, 5 2");
}

}  // namespace
}  // namespace stint::test
