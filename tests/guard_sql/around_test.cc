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
  Session("postgres").must(
      cat("CREATE DATABASE ", database,
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
  EXPECT_EQ(session.state_of(cat("SELECT stint.seal(resource, 6, '", kLife,
                                 "', 6, true) FROM job")),
            "");
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
  session.must("CREATE TABLE p11 PARTITION OF p1 FOR VALUES FROM (0) TO (5);"
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

}  // namespace
}  // namespace stint::test
