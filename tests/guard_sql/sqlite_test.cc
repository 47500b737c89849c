// The guard in a user's own SQLite database, through the library's header alone.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <random>

#include "base/text.h"
#include "stint/guard_sqlite.h"
#include "stint/stint.h"
#include "tests/support/process.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

class Db {
 public:
  explicit Db(const std::string& path) { EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK); }
  ~Db() { sqlite3_close(db_); }
  Db(const Db&) = delete;
  Db& operator=(const Db&) = delete;
  int run(const std::string& sql) {
    return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  int number(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const int out = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    return out;
  }
  sqlite3* get() { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

class SqliteGuard : public ::testing::Test {
 protected:
  SqliteGuard()
      : client_(*Client::open({.store = cat("sqlite:", dir_.file("store.db")), .owner = "a"})),
        a_(dir_.file("data.db")),
        b_(dir_.file("data.db")) {
    a_.run(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE doc (n, token);"
        "INSERT INTO doc VALUES (0, 0)");
  }
  guard::SqlitePass next() {
    Holder holder = *Holder::acquire(client_, {.resource = "r"});
    return {.resource = "r", .token = holder.token(), .generation = holder.generation()};
  }
  static Code code(const guard::SqliteAnswer& answer) {
    const auto* refused = answer.get_if<guard::SqliteRefused>();
    return refused == nullptr ? Code::Failed : refused->code;
  }

  TempDir dir_;
  Client client_;
  Db a_;
  Db b_;
};

// EVIDENCE-OF: G5
TEST_F(SqliteGuard, AtNoStepDoesTheZombieWriteAfterTheSeal) {
  std::mt19937 dice(3);
  int accepted = 0;
  guard::SqlitePass old = next();
  ASSERT_TRUE(guard::seal(a_.get(), old, client_));
  const int rounds = plays(100);
  for (int i = 0; i < rounds; ++i) {
    const int a_saw = a_.number("SELECT n FROM doc");
    const int frozen_at = static_cast<int>(dice() % 3);  // before, after BEGIN, after admit
    if (frozen_at >= 1) {
      ASSERT_EQ(a_.run("BEGIN"), SQLITE_OK);
    }
    if (frozen_at >= 2) {
      ASSERT_TRUE(guard::admit(a_.get(), old));
    }
    const guard::SqlitePass fresh = next();
    auto sealed = guard::seal(b_.get(), fresh, client_);
    // Only while A is between admit and commit.
    ASSERT_EQ(static_cast<bool>(sealed), frozen_at < 2);
    const auto finish_a = [&] {
      if (frozen_at < 1) {
        ASSERT_EQ(a_.run("BEGIN IMMEDIATE"), SQLITE_OK);
      }
      if (frozen_at < 2) {
        ASSERT_EQ(code(guard::admit(a_.get(), old)), Code::Stale);
        ASSERT_EQ(a_.run("ROLLBACK"), SQLITE_OK);
        return;
      }
      ASSERT_EQ(a_.run(cat("UPDATE doc SET n = ", a_saw + 1, "; COMMIT")), SQLITE_OK);
      ++accepted;
    };
    if (frozen_at == 2) {
      finish_a();
      sealed = guard::seal(b_.get(), fresh, client_);
      ASSERT_TRUE(sealed);
    }
    const int b_saw = b_.number("SELECT n FROM doc");
    ASSERT_EQ(b_.run("BEGIN IMMEDIATE"), SQLITE_OK);
    ASSERT_TRUE(guard::admit(b_.get(), fresh));
    ASSERT_EQ(b_.run(cat("UPDATE doc SET n = ", b_saw + 1, "; COMMIT")), SQLITE_OK);
    ++accepted;
    if (frozen_at < 2) finish_a();
    old = fresh;
  }
  EXPECT_EQ(a_.number("SELECT n FROM doc"), accepted);
  std::printf("%d plays, %d writes\n", rounds, accepted);
}

TEST_F(SqliteGuard, TellsEachRefusalApart) {
  const guard::SqlitePass pass = next();
  // Without a transaction the check and the write would be two steps.
  ASSERT_NE(guard::admit(a_.get(), pass).error(), nullptr);
  EXPECT_EQ(guard::admit(a_.get(), pass).error()->code, Code::Invalid);
  ASSERT_EQ(a_.run("BEGIN IMMEDIATE"), SQLITE_OK);
  // Nothing was sealed, and nobody can be asked.
  EXPECT_EQ(guard::admit(a_.get(), pass).error()->code, Code::Unavailable);
  EXPECT_TRUE(guard::admit(a_.get(), pass, &client_));
  guard::SqlitePass other = pass;
  other.token = 0;
  EXPECT_EQ(code(guard::admit(a_.get(), other)), Code::NoToken);
  other.token = pass.token + 1;
  EXPECT_EQ(code(guard::admit(a_.get(), other, &client_)), Code::NeverIssued);
  other = pass;
  other.generation = std::string(32, '7');
  EXPECT_EQ(code(guard::admit(a_.get(), other, &client_)), Code::Foreign);
  other.generation = "x";
  EXPECT_EQ(guard::admit(a_.get(), other).error()->code, Code::Invalid);
  guard::SqlitePass once = pass;
  once.once = true;
  once.key = "k";
  EXPECT_TRUE(guard::admit(a_.get(), once));
  auto again = guard::admit(a_.get(), once);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already);
  once.key = "another";
  EXPECT_EQ(code(guard::admit(a_.get(), once)), Code::Used);
  ASSERT_EQ(a_.run("COMMIT"), SQLITE_OK);
}

// A store that was restored unnoticed gives the same number to another.
// EVIDENCE-OF: G12
TEST_F(SqliteGuard, AnotherClaimOfTheSameTokenIsAFault) {
  guard::SqlitePass pass = next();
  pass.claim = std::string(32, 'a');
  ASSERT_TRUE(guard::seal(a_.get(), pass, client_));
  guard::SqlitePass twin = pass;
  twin.claim = std::string(32, 'b');
  const auto sealed = guard::seal(b_.get(), twin, client_);
  ASSERT_NE(sealed.error(), nullptr);
  EXPECT_EQ(sealed.error()->code, Code::Unavailable);
  EXPECT_NE(sealed.error()->message.find("twice"), std::string::npos);
  ASSERT_EQ(b_.run("BEGIN IMMEDIATE"), SQLITE_OK);
  EXPECT_NE(guard::admit(b_.get(), twin, &client_).error(), nullptr);
  EXPECT_TRUE(guard::admit(b_.get(), pass, &client_));
  ASSERT_EQ(b_.run("COMMIT"), SQLITE_OK);
  twin.claim = "x";
  EXPECT_EQ(guard::seal(b_.get(), twin, client_).error()->code, Code::Invalid);
  // Who shows none does not wipe it out.
  guard::SqlitePass bare = pass;
  bare.claim.clear();
  bare.once = true;
  bare.key = "k";
  ASSERT_EQ(b_.run("BEGIN IMMEDIATE"), SQLITE_OK);
  EXPECT_TRUE(guard::admit(b_.get(), bare, &client_));
  ASSERT_EQ(b_.run("COMMIT"), SQLITE_OK);
  twin.claim = std::string(32, 'b');
  EXPECT_NE(guard::seal(b_.get(), twin, client_).error(), nullptr);
}

TEST_F(SqliteGuard, ATableOfAnEarlierVersionIsWidened) {
  const guard::SqlitePass pass = next();
  ASSERT_EQ(a_.run(cat("CREATE TABLE stint_fences (resource TEXT PRIMARY KEY NOT NULL, generation "
                       "TEXT NOT NULL, token INTEGER NOT NULL, used INTEGER NOT NULL, key TEXT NOT "
                       "NULL, digest TEXT NOT NULL) WITHOUT ROWID; INSERT INTO stint_fences VALUES "
                       "('r', '",
                       pass.generation, "', 1, 0, '', '')")),
            SQLITE_OK);
  const guard::SqlitePass newer = next();
  ASSERT_TRUE(guard::seal(a_.get(), newer, client_));
  EXPECT_EQ(code(guard::seal(a_.get(), pass, client_)), Code::Stale);
}

TEST_F(SqliteGuard, ADamagedFenceAdmitsNothing) {
  const guard::SqlitePass pass = next();
  ASSERT_TRUE(guard::seal(a_.get(), pass, client_));
  for (const char* harm : {"token = 'seven'", "token = -1", "generation = 'g'", "used = 3",
                           "token = 9007199254740992"}) {
    ASSERT_EQ(a_.run(cat("BEGIN IMMEDIATE; UPDATE stint_fences SET ", harm)), SQLITE_OK);
    const auto answer = guard::admit(a_.get(), pass, &client_);
    ASSERT_NE(answer.error(), nullptr) << harm;
    EXPECT_EQ(answer.error()->code, Code::Unavailable) << harm;
    a_.run("ROLLBACK");
  }
  ASSERT_EQ(a_.run("DROP TABLE stint_fences; CREATE TABLE stint_fences (mine)"), SQLITE_OK);
  EXPECT_NE(guard::seal(a_.get(), pass, client_).error(), nullptr);
  EXPECT_EQ(sqlite3_get_autocommit(a_.get()), 1);
}

TEST_F(SqliteGuard, AStaleSnapshotIsAFaultAndNotAdmitted) {
  const guard::SqlitePass pass = next();
  ASSERT_TRUE(guard::seal(a_.get(), pass, client_));
  ASSERT_EQ(a_.run("BEGIN; SELECT * FROM doc"), SQLITE_OK);
  ASSERT_EQ(b_.run("UPDATE doc SET n = 7"), SQLITE_OK);
  const auto answer = guard::admit(a_.get(), pass);
  ASSERT_NE(answer.error(), nullptr);
  EXPECT_EQ(answer.error()->code, Code::Unavailable);
  a_.run("ROLLBACK");
}

}  // namespace
}  // namespace stint::test
