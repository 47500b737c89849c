// The guard of a PostgreSQL database: put in, brought up to date, taken out.
#include <gtest/gtest.h>

#include <thread>

#include "base/text.h"
#include "bench/client.h"
#include "tests/cli/stint.h"
#include "tests/guard_sql/session.h"

namespace stint::test {
namespace {

TEST(SqlInstall, IsTheSameTwiceAtOnceAndBesideTheStoreInEitherOrder) {
  const std::string database = new_database();
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { good += guard_of(database)->install().has_value() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 4);
  EXPECT_FALSE(guard_of(database)->install().value());
  const std::string url = cat("postgres://postgres@127.0.0.1:", server().port(), "/", database);
  {
    bench::Client store(url);
    store.release(store.take("r"));
  }  // after the guard
  EXPECT_TRUE(guard_of(database)->look().value().store_is_here);
  EXPECT_TRUE(guard_of(database)->uninstall(false).value());
  EXPECT_FALSE(guard_of(database)->uninstall(false).value());
  Session session(database);
  EXPECT_EQ(session.value("SELECT count(*) FROM stint.leases"), "1");
  EXPECT_EQ(
      session.value(
          "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
          "WHERE nspname = 'stint' AND relname IN ('guard', 'fences', 'sealing', 'overrides')"),
      "0");
  EXPECT_TRUE(guard_of(database)->install().value());  // before it
  {
    bench::Client store(url);
    store.release(store.take("r"));
  }
  EXPECT_EQ(session.value("SELECT count(*) FROM stint.leases"), "1");
}

TEST(SqlInstall, IsRemovedWithoutATraceAndNotWhileTablesAreProtected) {
  const std::string database = guarded_database();
  Session session(database);
  session.must(
      "CREATE TABLE p (i int) PARTITION BY LIST (i); CREATE TABLE p1 PARTITION OF p FOR VALUES IN "
      "(1)");
  const auto guard = guard_of(database);
  ASSERT_TRUE(guard->protect("p", ResourceName::parse("r").value()));
  const auto kept = guard->uninstall(false);
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().code, Code::Invalid);
  EXPECT_EQ(session.state_of("INSERT INTO p VALUES (1)"), "ST006");
  EXPECT_TRUE(guard->uninstall(true).value());
  EXPECT_EQ(session.state_of("INSERT INTO p VALUES (1)"), "");
  EXPECT_EQ(session.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'stint'"), "0");
  EXPECT_EQ(session.value("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'stint%'"), "0");
}

// As pg_dump writes it, without the words that are other ones each time.
std::string dump_of(const std::string& database, const std::string& user,
                    const std::vector<std::string>& more) {
  std::vector<std::string> argv = {
      PostgresServer::program("pg_dump"), "-d",
      cat("postgres://", user, "@127.0.0.1:", server().port(), "/", database)};
  argv.insert(argv.end(), more.begin(), more.end());
  const Finished done = run({.argv = argv});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  std::string out;
  for (const std::string_view line : split(done.out, '\n')) {
    if (line.find("restrict ") == line.npos) out += cat(line, '\n');
  }
  return out;
}

// A database as its users had it, and no other after the guard is gone.
TEST(SqlInstall, LeavesADatabaseAsItWas) {
  for (const char* user : {"postgres", "owner"}) {
    for (const char* schema : {"", "CREATE SCHEMA stint", "store",
                               "CREATE SCHEMA stint; GRANT USAGE ON SCHEMA stint TO PUBLIC"}) {
      SCOPED_TRACE(cat(user, ": ", schema));
      const std::string database = new_database();
      const std::string role =
          std::string_view(user) == "owner" ? cat("owner_", database) : std::string(user);
      Session admin(database);
      if (role != user) {
        admin.must(cat("CREATE ROLE ", role, " LOGIN; ALTER DATABASE ", database, " OWNER TO ",
                       role, "; ALTER SCHEMA public OWNER TO ", role));
      }
      Session session(database, role);
      if (std::string_view(schema) == "store") {
        bench::Client store(
            cat("postgres://", role, "@127.0.0.1:", server().port(), "/", database));
        store.release(store.take("r"));
      } else {
        session.must(cat(schema, "; SELECT 1"));
      }
      session.must(
          "CREATE TABLE t (i int); CREATE TABLE c () INHERITS (t); CREATE TABLE lone (i int);"
          "CREATE TABLE p (i int) PARTITION BY RANGE (i);"
          "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);"
          "CREATE TABLE gone PARTITION OF p FOR VALUES FROM (20) TO (30);"
          "CREATE TABLE p2 (i int); INSERT INTO p VALUES (1); GRANT SELECT ON t TO PUBLIC");
      const auto dump = [&] { return dump_of(database, "postgres", {"--schema-only"}); };
      const std::string later =
          "ALTER TABLE p DETACH PARTITION gone; ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM"
          " (10) TO (20); CREATE TABLE d () INHERITS (t)";
      session.must(cat("BEGIN; ", later));
      session.must("ROLLBACK");
      const std::string before = dump();
      const auto guard = guard_of(database, role);
      EXPECT_TRUE(guard->install().value());
      EXPECT_FALSE(guard->install().value());
      for (const char* table : {"t", "p", "lone"}) {
        ASSERT_TRUE(guard->protect(table, ResourceName::parse("r").value())) << table;
      }
      EXPECT_NE(dump(), before);
      EXPECT_TRUE(guard->uninstall(true).value());
      EXPECT_EQ(dump(), before);
      // Also what has become of the tables meanwhile.
      session.must(later);
      const std::string changed = dump();
      session.must(
          "DROP TABLE d; ALTER TABLE p DETACH PARTITION p2;"
          "ALTER TABLE p ATTACH PARTITION gone FOR VALUES FROM (20) TO (30)");
      EXPECT_TRUE(guard->install().value());
      for (const char* table : {"t", "p", "lone"}) {
        ASSERT_TRUE(guard->protect(table, ResourceName::parse("r").value())) << table;
      }
      session.must(later);
      EXPECT_TRUE(guard->uninstall(true).value());
      EXPECT_EQ(dump(), changed);
    }
  }
}

// A role that may read its own tables and no more saves them as before, and what it saved can be
// brought back.
TEST(SqlInstall, KeepsNobodyFromDumpingWhatIsTheirs) {
  const std::string database = new_database();
  const std::string role = cat("reader_", database);
  Session admin(database);
  admin.must(cat("CREATE ROLE ", role,
                 " LOGIN; CREATE TABLE t (i int); INSERT INTO t VALUES (7);"
                 "GRANT SELECT ON t TO ",
                 role));
  const auto guard = guard_of(database);
  ASSERT_TRUE(guard->install());
  seal(admin, "r", 5);
  ASSERT_TRUE(guard->protect("t", ResourceName::parse("r").value()));
  admin.must("BEGIN; SET LOCAL stint.override = 'fire'; UPDATE t SET i = 8; COMMIT");
  const std::string dump = dump_of(database, role, {});
  EXPECT_NE(dump.find("CREATE TRIGGER stint_guard "), std::string::npos);
  // Nothing that is on record can be changed by who may read it.
  Session reader(database, role);
  EXPECT_EQ(reader.state_of("DELETE FROM stint.overrides"), "42501");
  const std::string copy = new_database();
  TempDir dir;
  write_text(dir.file("dump"), dump);
  const Finished restored =
      run({.argv = {PostgresServer::program("psql"), "-Xq", "-v", "ON_ERROR_STOP=1", "-f",
                    dir.file("dump"), "-d",
                    cat("postgres://postgres@127.0.0.1:", server().port(), "/", copy)}});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  Session other(copy);
  EXPECT_EQ(other.state_of("INSERT INTO t VALUES (1)"), "ST006");
  EXPECT_EQ(other.state_of("BEGIN; SET LOCAL stint.token = '5'; INSERT INTO t VALUES (1); COMMIT"),
            "");
  EXPECT_TRUE(guard_of(copy)->look().value().problems.empty());
}

// As version 2 left it.
TEST(SqlInstall, BringsAnOlderOneUpToDateAndKeepsItsFences) {
  const std::string database = guarded_database();
  Session session(database);
  session.must(
      "INSERT INTO stint.fences (resource, generation, token) VALUES ('r', repeat('1', 32), 7);"
      "ALTER TABLE stint.fences DROP COLUMN nobodys; UPDATE stint.guard SET version = 2;"
      "DROP FUNCTION stint.verdict; CREATE FUNCTION stint.verdict(boolean, text, bigint, boolean, "
      "text, text, text, bigint, boolean, text, text, boolean, boolean, text, text[], bigint, "
      "boolean) RETURNS text LANGUAGE sql AS $$ SELECT 'admitted' $$");
  const auto guard = guard_of(database);
  EXPECT_EQ(guard->look().value().problems.size(), 1U);
  ASSERT_TRUE(guard->install());
  EXPECT_TRUE(guard->look().value().problems.empty());
  EXPECT_EQ(session.value("SELECT count(*) FROM pg_proc WHERE proname = 'verdict'"), "1");
  EXPECT_EQ(session.value("SELECT token || ' ' || nobodys FROM stint.fences"), "7 false");
  EXPECT_EQ(session.state_of("SELECT stint.admit('r', 6, repeat('1', 32))"), "ST001");
  EXPECT_EQ(session.state_of("SELECT stint.admit('r', 7, repeat('1', 32))"), "");
}

// Functions of two versions never judge side by side: who was admitted by the one ends before the
// other is there.
TEST(SqlInstall, WaitsForWhoWasAdmittedBefore) {
  const std::string database = guarded_database();
  Session admin(database);
  seal(admin, "r", 1);
  Session writer(database);
  writer.must("BEGIN; SELECT stint.admit('r', 1)");
  std::thread installer([&] { EXPECT_TRUE(guard_of(database)->install()); });
  EXPECT_TRUE(wait_until([&] {
    return admin.value(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query "
               "LIKE "
               "'BEGIN;%TABLE IF NOT EXISTS stint.guard%' AND datname = current_database()") == "1";
  }));
  // Whoever comes meanwhile stands behind it, and is judged by what it has put there.
  Session late(database);
  late.send("SELECT stint.admit('r', 1)");
  EXPECT_TRUE(blocked(late, admin));
  Session sealer(database);
  sealer.send(seal_sql("r", 2));
  EXPECT_TRUE(blocked(sealer, admin));
  writer.must("COMMIT");
  installer.join();
  EXPECT_EQ(late.answer().state, "");
  EXPECT_EQ(sealer.answer().state, "");
  EXPECT_EQ(admin.state_of("SELECT stint.admit('r', 1)"), "ST001");
}

// What a hardened database says of new functions.
TEST(SqlInstall, LetsEverybodyAdmitWhateverTheDefaultRightsAre) {
  const std::string database = new_database();
  Session admin(database);
  const std::string role = cat("plain_", database);
  admin.must(cat("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; CREATE ROLE ",
                 role, " LOGIN"));
  ASSERT_TRUE(guard_of(database)->install());
  seal(admin, "r", 5);
  Session writer(database, role);
  for (const char* limit : {"0", "5s"}) {
    writer.must(cat("SET statement_timeout = '", limit, "'"));
    EXPECT_EQ(writer.state_of("SELECT stint.admit('r', 5)"), "");
  }
  EXPECT_EQ(writer.state_of("SELECT stint.admit('r', 5, interval '5 s')"), "");
  EXPECT_EQ(writer.state_of("SELECT stint.admit_all(ARRAY['r'], ARRAY[5])"), "");
  EXPECT_EQ(writer.state_of("SELECT stint.admit('r', 4)"), "ST001");
  EXPECT_EQ(writer.state_of(seal_sql("r", 6)), "42501");
}

TEST(SqlInstall, SaysWhatIsInItsWay) {
  const std::string database = new_database();
  Session session(database);
  const auto guard = guard_of(database);
  const auto none = guard->protect("pg_class", ResourceName::parse("r").value());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::Unavailable);
  EXPECT_EQ(guard->look().value().version, 0);
  session.must("CREATE SCHEMA stint; CREATE TABLE stint.fences (mine int)");
  EXPECT_FALSE(guard->install());
  EXPECT_EQ(session.value("SELECT count(*) FROM stint.fences"), "0");
  session.must("DROP TABLE stint.fences");
  EXPECT_TRUE(guard->install());
  session.must("UPDATE stint.guard SET version = 99");
  const auto newer = guard->install();
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().message.find("newer stint"), std::string::npos);
  session.must("CREATE ROLE nobody_special LOGIN");
  const auto denied = guard_of(new_database(), "nobody_special")->install();
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, Code::Denied) << denied.error().message;
}

TEST(SqlInstall, BringsAnOlderVersionUpToDateWhereItIsToldWhereTheLeasesAre) {
  const std::string database = guarded_database();
  Session admin(database);
  admin.must(
      "UPDATE stint.guard SET version = 1; ALTER TABLE stint.guard DROP COLUMN store_schema;"
      "DROP FUNCTION stint.store_is_here()");
  const auto old = guard_of(database)->look().value();
  ASSERT_EQ(old.problems.size(), 1U);
  EXPECT_NE(old.problems.front().find("guard install"), std::string::npos);
  const auto unsaid = guard_of(database)->install();
  ASSERT_FALSE(unsaid);
  EXPECT_NE(unsaid.error().message.find("?schema="), std::string::npos) << unsaid.error().message;
  net::Address address = address_of(database);
  address.options["schema"] = "stint";
  auto told = guard::open_postgres_guard({.address = address}, clock());
  EXPECT_TRUE((*told)->install().value());
  EXPECT_FALSE(guard_of(database)->install().value());
  EXPECT_TRUE(guard_of(database)->look().value().problems.empty());
}

}  // namespace
}  // namespace stint::test
