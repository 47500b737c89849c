// A protected table is a part of other tables, or has parts: whatever name a statement says, the
// rows of a protected table need a token. Each way is tried without a token, with one that a seal
// has overtaken, and with the right one.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/guard_sql/session.h"

namespace stint::test {
namespace {

struct Way {
  const char* name;
  const char* before;   // the tables
  const char* protect;  // which one of them
  const char* after;    // what is done to them later
  const char* write;
  // `after` is refused where no event trigger may be made: the guard would not be told of it.
  bool refused_alone = false;
};

// p1 is a partition, c a child: they alone are protected, the rest of their tree is not.
constexpr const char* kPartition =
    "CREATE TABLE p (i int, v int) PARTITION BY RANGE (i);"
    "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
    "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);"
    "INSERT INTO p VALUES (1, 1), (11, 1)";
constexpr const char* kDeep =
    "CREATE TABLE p (i int, v int) PARTITION BY RANGE (i);"
    "CREATE TABLE m PARTITION OF p FOR VALUES FROM (0) TO (10) PARTITION BY RANGE (i);"
    "CREATE TABLE p1 PARTITION OF m FOR VALUES FROM (0) TO (5);"
    "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);"
    "INSERT INTO p VALUES (1, 1), (11, 1)";
constexpr const char* kKeyed =
    "CREATE TABLE o (i int PRIMARY KEY); INSERT INTO o VALUES (1), (2), (11);"
    "CREATE TABLE p (i int PRIMARY KEY, v int REFERENCES o ON DELETE CASCADE ON UPDATE CASCADE)"
    " PARTITION BY RANGE (i);"
    "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
    "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);"
    "CREATE TABLE far (i int REFERENCES p ON UPDATE CASCADE ON DELETE CASCADE);"
    "INSERT INTO p VALUES (1, 1), (11, 2); INSERT INTO far VALUES (1)";
constexpr const char* kChild =
    "CREATE TABLE p (i int, v int); CREATE TABLE c (more int) INHERITS (p);"
    "INSERT INTO p VALUES (11, 1); INSERT INTO c VALUES (1, 1, 1)";
constexpr const char* kApart =
    "CREATE TABLE p (i int, v int) PARTITION BY RANGE (i);"
    "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);"
    "CREATE TABLE p1 (i int, v int); INSERT INTO p1 VALUES (1, 1); INSERT INTO p VALUES (11, 1)";
constexpr const char* kAttach = "ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (10)";
constexpr const char* kParts =
    "CREATE TABLE q (i int, v int) PARTITION BY RANGE (i);"
    "CREATE TABLE p1 PARTITION OF q FOR VALUES FROM (0) TO (5); INSERT INTO q VALUES (1, 1);"
    "CREATE TABLE p (i int, v int) PARTITION BY RANGE (i)";
constexpr const char* kAttachParts =
    "ALTER TABLE p ATTACH PARTITION q FOR VALUES FROM (0) TO (10);"
    "CREATE TABLE q2 PARTITION OF q FOR VALUES FROM (5) TO (10)";

const Way kWays[] = {
    {"insert by way of the parent", kPartition, "p1", "", "INSERT INTO p VALUES (2, 2)"},
    {"insert or update by way of the parent", kKeyed, "p1", "",
     "INSERT INTO p VALUES (1, 1) ON CONFLICT (i) DO UPDATE SET v = 2"},
    {"copy by way of the parent", kPartition, "p1", "", "COPY p FROM PROGRAM 'echo 2,2' CSV"},
    {"update by way of the parent", kPartition, "p1", "", "UPDATE p SET v = 9"},
    {"update that moves a row in", kPartition, "p1", "", "UPDATE p SET i = 2 WHERE i = 11"},
    {"update that moves a row out", kPartition, "p1", "", "UPDATE p SET i = 12 WHERE i = 1"},
    {"a sibling's update that moves a row in", kPartition, "p1", "",
     "WITH gone AS (DELETE FROM p2 RETURNING v) INSERT INTO p SELECT 3, v FROM gone"},
    {"a keyed row moves out", kKeyed, "p1", "", "UPDATE p SET i = 12 WHERE i = 1"},
    {"a keyed row moves in", kKeyed, "p1", "", "UPDATE p SET i = 2 WHERE i = 11"},
    {"delete by way of the parent", kPartition, "p1", "", "DELETE FROM p"},
    {"truncate of the parent", kPartition, "p1", "", "TRUNCATE p"},
    {"merge that inserts", kPartition, "p1", "",
     "MERGE INTO p USING (VALUES (2)) s (i) ON p.i = s.i WHEN NOT MATCHED THEN"
     " INSERT VALUES (s.i, 1)"},
    {"merge that updates", kPartition, "p1", "",
     "MERGE INTO p USING (VALUES (1)) s (i) ON p.i = s.i WHEN MATCHED THEN UPDATE SET v = 3"},
    {"merge that deletes", kPartition, "p1", "",
     "MERGE INTO p USING (VALUES (1)) s (i) ON p.i = s.i WHEN MATCHED THEN DELETE"},
    {"insert by way of the parent's parent", kDeep, "p1", "", "INSERT INTO p VALUES (2, 2)"},
    {"insert by way of the parent's parent, the middle protected", kDeep, "m", "",
     "INSERT INTO p VALUES (2, 2)"},
    {"delete by way of the parent's parent", kDeep, "p1", "", "DELETE FROM p"},
    {"truncate of the parent's parent", kDeep, "p1", "", "TRUNCATE p"},
    {"truncate of the parent's parent, the middle protected", kDeep, "m", "", "TRUNCATE p"},
    {"a key's cascade deletes", kKeyed, "p1", "", "DELETE FROM o WHERE i = 1"},
    {"a key's cascade updates", kKeyed, "p1", "", "UPDATE o SET i = 4 WHERE i = 1"},
    {"a view of the parent", kPartition, "p1", "CREATE VIEW w AS SELECT * FROM p",
     "INSERT INTO w VALUES (2, 2)"},
    {"a rule of another table", kPartition, "p1",
     "CREATE TABLE other (i int); CREATE RULE away AS ON INSERT TO other DO INSTEAD"
     " INSERT INTO p VALUES (new.i, 2)",
     "INSERT INTO other VALUES (2)"},
    {"a function that writes", kPartition, "p1",
     "CREATE FUNCTION put() RETURNS void LANGUAGE sql AS 'INSERT INTO p VALUES (2, 2)'",
     "SELECT put()"},
    {"a renamed tree", kPartition, "p1", "ALTER TABLE p RENAME TO r; ALTER TABLE p1 RENAME TO r1",
     "INSERT INTO r VALUES (2, 2)"},
    {"update of rows of a child", kChild, "c", "", "UPDATE p SET v = 9"},
    {"delete of rows of a child", kChild, "c", "", "DELETE FROM p"},
    {"truncate of a child", kChild, "c", "", "TRUNCATE p"},
    {"merge into a child", kChild, "c", "",
     "MERGE INTO p USING (VALUES (1)) s (i) ON p.i = s.i WHEN MATCHED THEN UPDATE SET v = 3"},
    {"a child of two", kChild, "c", "CREATE TABLE p0 (v int); ALTER TABLE c INHERIT p0",
     "UPDATE p0 SET v = 9"},
    {"attached later", kApart, "p1", kAttach, "INSERT INTO p VALUES (2, 2)", true},
    {"attached later, delete", kApart, "p1", kAttach, "DELETE FROM p", true},
    {"attached later, truncate", kApart, "p1", kAttach, "TRUNCATE p", true},
    {"attached later, moved in", kApart, "p1", kAttach, "UPDATE p SET i = 2 WHERE i = 11", true},
    {"inherits later",
     "CREATE TABLE p (i int, v int); CREATE TABLE c (i int, v int);"
     "INSERT INTO c VALUES (1, 1)",
     "c", "ALTER TABLE c INHERIT p", "DELETE FROM p", true},
    {"parts attached later", kParts, "q", kAttachParts, "INSERT INTO p VALUES (2, 2)"},
    {"parts attached later, a new part", kParts, "q", kAttachParts, "INSERT INTO p VALUES (7, 2)"},
    {"parts attached later, truncate", kParts, "q", kAttachParts, "TRUNCATE p"},
    {"detached and attached elsewhere", kPartition, "p1",
     "ALTER TABLE p DETACH PARTITION p1; CREATE TABLE n (i int, v int) PARTITION BY RANGE (i);"
     "ALTER TABLE n ATTACH PARTITION p1 FOR VALUES FROM (0) TO (10)",
     "INSERT INTO n VALUES (2, 2)"},
    {"detached", kPartition, "p", "ALTER TABLE p DETACH PARTITION p1", "DELETE FROM p1"},
    {"inherits no more", kChild, "p", "ALTER TABLE c NO INHERIT p", "DELETE FROM c"},
    {"a new part of a protected table", kPartition, "p",
     "CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (20) TO (30)",
     "INSERT INTO p3 VALUES (21, 1)"},
    {"a part that was attached to a protected table", kPartition, "p",
     "CREATE TABLE p3 (i int, v int); INSERT INTO p3 VALUES (21, 1);"
     "ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (20) TO (30)",
     "DELETE FROM p3"},
};

// By a superuser the guard is told of later parts; where it was installed by another role it is
// not.
class SqlTree : public ::testing::TestWithParam<bool> {
 protected:
  SqlTree()
      : database_(new_database()), role_(GetParam() ? "postgres" : cat("owner_of_", database_)) {
    if (!GetParam()) {
      Session("postgres")
          .must(cat("CREATE ROLE ", role_, " LOGIN; ALTER DATABASE ", database_, " OWNER TO ",
                    role_, "; GRANT pg_execute_server_program TO ", role_));
    }
    guard_ = guard_of(database_, role_);
    EXPECT_TRUE(guard_->install().value());
    session_ = std::make_unique<Session>(database_, role_);
    seal(*session_, "r", 5);
    seal(*session_, "r", 6);
  }
  std::string with(const std::string& say, const std::string& write) {
    const std::string state = session_->state_of(cat("BEGIN; ", say, "; ", write, "; COMMIT"));
    if (!state.empty()) session_->must("ROLLBACK");
    return state;
  }
  void protect(const std::string& table) {
    const auto made = guard_->protect(table, ResourceName::parse("r").value());
    EXPECT_TRUE(made) << table << ": " << made.error().message;
  }
  // In a schema of its own.
  void begin(const std::string& before) {
    schema_ = cat("way_", ++number_);
    session_->must(cat("CREATE SCHEMA ", schema_, "; SET search_path = ", schema_, "; ", before));
  }
  void expect_guarded(const std::string& write) {
    EXPECT_EQ(session_->state_of(write), "ST006");
    EXPECT_EQ(with("SET LOCAL stint.token = '5'", write), "ST001");
    EXPECT_EQ(with("SAVEPOINT a; SELECT stint.admit('r', 6); ROLLBACK TO a", write), "ST006");
    // Another resource's opens nothing.
    EXPECT_EQ(with("SET LOCAL stint.resource = 's'; SET LOCAL stint.token = '6'", write), "ST006");
    EXPECT_EQ(with("SELECT stint.admit('r', 6)", cat("SAVEPOINT a; ", write, "; ROLLBACK TO a")),
              "");
    EXPECT_EQ(with("SET LOCAL stint.token = '6'", write), "");
  }

  const std::string database_;
  const std::string role_;
  std::unique_ptr<guard::PostgresGuard> guard_;
  std::unique_ptr<Session> session_;
  std::string schema_;
  int number_ = 0;
};

// EVIDENCE-OF: G5
TEST_P(SqlTree, IsWrittenByNoWayWithoutACurrentToken) {
  for (const Way& way : kWays) {
    SCOPED_TRACE(way.name);
    begin(way.before);
    protect(cat(schema_, ".", way.protect));
    const std::string after = session_->state_of(cat(way.after, "; SELECT 1"));
    if (way.refused_alone && !GetParam()) {
      EXPECT_EQ(after, "0A000");
      continue;
    }
    EXPECT_EQ(after, "");
    expect_guarded(way.write);
  }
}

// Tables that become parts of a protected one.
TEST_P(SqlTree, IsFollowedOrSaidToBeOpen) {
  begin("CREATE TABLE p (i int) PARTITION BY RANGE (i); CREATE TABLE t (i int)");
  for (const char* table : {"p", "t"}) protect(cat(schema_, ".", table));
  EXPECT_TRUE(guard_->look().value().problems.empty());
  session_->must(
      "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10); CREATE TABLE c () INHERITS (t);"
      "CREATE TABLE d (i int); ALTER TABLE d INHERIT t");
  session_->must(
      cat("CREATE SCHEMA ", schema_, "_more CREATE TABLE e () INHERITS (", schema_, ".t)"));
  if (!GetParam()) {
    EXPECT_EQ(session_->state_of("INSERT INTO c VALUES (1); TRUNCATE p1"), "");
    const auto said = guard_->look().value().problems;
    ASSERT_EQ(said.size(), 4U);
    for (const std::string& line : said) EXPECT_NE(line.find("protect"), std::string::npos) << line;
    for (const char* table : {"p", "t"}) protect(cat(schema_, ".", table));
  }
  EXPECT_TRUE(guard_->look().value().problems.empty());
  for (const char* write :
       {"TRUNCATE p1", "INSERT INTO c VALUES (1)", "INSERT INTO d VALUES (1)"}) {
    SCOPED_TRACE(write);
    expect_guarded(write);
  }
  // What has no name of the tree any more keeps its guard, and is never left without a word.
  session_->must("ALTER TABLE p DETACH PARTITION p1");
  EXPECT_EQ(guard_->look().value().problems.size(), GetParam() ? 0U : 1U);
  EXPECT_EQ(session_->state_of("TRUNCATE p1"), "ST006");
}

// Who makes a part of it while it is being protected.
TEST_P(SqlTree, IsProtectedWithWhatBecomesAPartMeanwhile) {
  begin("CREATE TABLE t (i int); CREATE TABLE q (i int); CREATE TABLE p (i int)");
  Session other(database_, role_);
  for (const auto& [table, makes] : {std::pair("t", "CREATE TABLE c () INHERITS (t)"),
                                     std::pair("q", "ALTER TABLE q INHERIT p")}) {
    SCOPED_TRACE(makes);
    other.must(cat("BEGIN; SET LOCAL search_path = ", schema_, "; ", makes));
    session_->send(cat("SELECT stint.protect('", schema_, ".", table, "', 'r')"));
    Session watcher(database_);
    EXPECT_TRUE(blocked(*session_, watcher));
    other.must("COMMIT");
    EXPECT_EQ(session_->answer().state, "");
  }
  EXPECT_TRUE(guard_->look().value().problems.empty());
  session_->must(
      "INSERT INTO p VALUES (1); BEGIN; SET LOCAL stint.token = '6';"
      "INSERT INTO q VALUES (1); COMMIT");
  for (const char* write : {"INSERT INTO c VALUES (1)", "DELETE FROM p"}) {
    SCOPED_TRACE(write);
    expect_guarded(write);
  }
}

// Each asks for its own, whichever way a row comes.
TEST_P(SqlTree, HasPartsOfTwoResources) {
  begin(kPartition);
  seal(*session_, "s", 9);
  protect(cat(schema_, ".p1"));
  ASSERT_TRUE(guard_->protect(cat(schema_, ".p2"), ResourceName::parse("s").value()));
  const std::string both = "INSERT INTO p SELECT g % 20 FROM generate_series(0, 99) g";
  EXPECT_EQ(with("SELECT stint.admit('r', 6)", both), "ST006");
  EXPECT_EQ(with("SELECT stint.admit('s', 9)", both), "ST006");
  EXPECT_EQ(with("SELECT stint.admit('r', 6); SELECT stint.admit('s', 8)", both), "ST001");
  EXPECT_EQ(with("SELECT stint.admit_all(ARRAY['r', 's'], ARRAY[6, 9])", both), "");
  EXPECT_EQ(with("SELECT stint.admit('r', 6)", "UPDATE p SET i = 12 WHERE i = 1"), "ST006");
  EXPECT_EQ(with("SELECT stint.admit('r', 6)", "DELETE FROM p WHERE i < 10"), "");
  // The whole cannot be one resource's while a part is another's.
  EXPECT_FALSE(guard_->protect(cat(schema_, ".p"), ResourceName::parse("r").value()));
  // Nor does a part that is another's come in unsaid.
  begin(cat(kPartition, "; CREATE TABLE q (i int, v int) PARTITION BY RANGE (i)"));
  protect(cat(schema_, ".p"));
  ASSERT_TRUE(guard_->protect(cat(schema_, ".q"), ResourceName::parse("s").value()));
  EXPECT_EQ(session_->state_of("ALTER TABLE p ATTACH PARTITION q FOR VALUES FROM (20) TO (30)"),
            GetParam() ? "55000" : "");
  EXPECT_EQ(guard_->look().value().problems.size(), GetParam() ? 0U : 1U);
}

// The rows of one statement are let through together, and stand in the record once.
TEST_P(SqlTree, IsOverriddenOnceForAllRowsOfAStatement) {
  begin(kPartition);
  protect(cat(schema_, ".p1"));
  const std::string write = "INSERT INTO p SELECT g % 10 FROM generate_series(0, 99) g";
  for (const char* say : {"SET LOCAL stint.override = 'fire'", "SET LOCAL stint.guard = 'warn'"}) {
    EXPECT_EQ(with(say, write), "");
    EXPECT_EQ(session_->value("SELECT string_agg(concat_ws(' ', relation, operation), ', ')"
                              " FROM stint.overrides"),
              cat(schema_, ".p1 INSERT"));
    session_->must("TRUNCATE stint.overrides");
  }
}

// The rows of a foreign table are elsewhere, and so is whoever writes them.
TEST_P(SqlTree, HasNoPartsThatAreElsewhere) {
  Session admin(database_);
  admin.must("CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w");
  admin.must(cat("GRANT USAGE ON FOREIGN SERVER s TO ", role_));
  begin("CREATE TABLE p (i int) PARTITION BY RANGE (i)");
  protect(cat(schema_, ".p"));
  EXPECT_EQ(session_->state_of("CREATE FOREIGN TABLE f PARTITION OF p FOR VALUES FROM (0) TO (9)"
                               " SERVER s"),
            GetParam() ? "42809" : "");
  EXPECT_EQ(guard_->look().value().problems.size(), GetParam() ? 0U : 1U);
}

INSTANTIATE_TEST_SUITE_P(InstalledBy, SqlTree, ::testing::Bool(),
                         [](const auto& one) { return one.param ? "Superuser" : "Owner"; });

}  // namespace
}  // namespace stint::test
