// What a role, a database, the server's file, a pooler or a name server may have set: the store is
// as safe as without it, or says what is in the way.
#include <unistd.h>

#include "tests/fault/postgres_plain_fixture.h"
#include "tests/support/pgbouncer.h"

namespace stint::test::plain_commits {
namespace {

class PostgresSettings : public PostgresPlain {
 protected:
  Result<std::unique_ptr<store::Store>> open_at(std::vector<store::Host> hosts,
                                                const std::string& user) {
    store::OpenRequest request;
    request.address.scheme = "postgres";
    request.address.user = user;
    request.address.path = "postgres";
    request.address.hosts = std::move(hosts);
    request.address.options["schema"] = schema_;
    request.timeout = Millis(10'000);
    return store::PostgresStore::open(request, clock_);
  }
  // The server's own file, and every session that goes by it.
  void set_for_all(const std::string& name, const std::string& value) const {
    sql(cat("ALTER SYSTEM SET ", name, " = '", value, "'"));
    sql("SELECT pg_reload_conf()");
    EXPECT_TRUE(wait_until([&] { return sql(cat("SHOW ", name)) == cat(value, "\n"); }));
  }
  void reset_for_all(const std::string& name) const {
    sql(cat("ALTER SYSTEM RESET ", name));
    sql("SELECT pg_reload_conf()");
  }

  // Each commit that writes leaves a line: how it is going to be synced.
  void note_syncs() const {
    EXPECT_EQ(sql(cat("CREATE TABLE noted (said text); CREATE FUNCTION note() RETURNS trigger"
                      " LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO ",
                      schema_,
                      ".noted VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;"
                      " CREATE TRIGGER note AFTER INSERT OR UPDATE ON record FOR EACH STATEMENT"
                      " EXECUTE FUNCTION note()")),
              "");
  }
  std::string noted() const {
    return sql("WITH d AS (DELETE FROM noted RETURNING said) SELECT DISTINCT said FROM d");
  }
  // The general way, a plain statement, a renewal, and two in one.
  void commit_in_all_ways(store::Store& store) {
    static int number = 0;
    const std::string alive = cat("alive", ++number);
    Step make = set(alive, "v", 0);
    make.timer = Step::TimerOp::Start;
    make.ttl = Millis(60'000);
    ASSERT_TRUE(committed(store.commit({make, step(Step::Kind::Check, "zz")}, Sync::Durable)));
    ASSERT_TRUE(committed(store.commit({set(cat("own", number), "v", 0)}, Sync::Durable)));
    Step touch = seen(step(Step::Kind::Touch, alive), version(store, alive));
    touch.timer = Step::TimerOp::Extend;
    touch.ttl = make.ttl;
    touch.demand = TimerState::Running;
    const Step own =
        seen(step(Step::Kind::Check, cat("own", number)), version(store, cat("own", number)));
    ASSERT_TRUE(committed(store.commit({touch, own}, Sync::Durable)));
    auto* const many = dynamic_cast<store::PostgresStore*>(&store);
    ASSERT_NE(many, nullptr);
    for (const auto& answer :
         many->commit_many({{{set(cat("a", number), "v", 0)}, Sync::Durable},
                            {{set(cat("b", number), "v", 0)}, Sync::Durable}})) {
      EXPECT_TRUE(committed(answer));
    }
  }
};

// What was acknowledged survives a crash, whoever set synchronous_commit to what.
// EVIDENCE-OF: G11
TEST_F(PostgresSettings, WhatMustBeDurableIsSynced) {
  ASSERT_NE(open(), nullptr);
  note_syncs();
  const std::string role = cat("careless_", schema_);
  sql(cat("CREATE ROLE ", role, " LOGIN SUPERUSER"));
  for (const std::string value : {"off", "local"}) {
    sql(cat("ALTER ROLE ", role, " SET synchronous_commit = ", value));
    auto store = open_at({{.name = "127.0.0.1", .port = server_->port()}}, role);
    ASSERT_TRUE(store) << store.error().message;
    commit_in_all_ways(**store);
    EXPECT_EQ(noted(), "on\n") << value;
  }
}

TEST_F(PostgresSettings, WhatMustBeDurableIsSyncedAlsoIfTheServersFileChangesMeanwhile) {
  const auto store = open();
  ASSERT_NE(store, nullptr);
  note_syncs();
  commit_in_all_ways(*store);
  EXPECT_EQ(noted(), "on\n");
  set_for_all("synchronous_commit", "off");
  commit_in_all_ways(*store);
  EXPECT_EQ(noted(), "on\n");
  if (PgBouncer::missing().empty()) {
    // Where a session has no settings of its own.
    PgBouncer pooler(server_->port());
    const auto started = pooler.start();
    ASSERT_TRUE(started) << started.error().message;
    reset_for_all("synchronous_commit");
    auto pooled = open_at({{.name = "127.0.0.1", .port = pooler.port()}}, "postgres");
    ASSERT_TRUE(pooled) << pooled.error().message;
    set_for_all("synchronous_commit", "off");
    commit_in_all_ways(**pooled);
    EXPECT_EQ(noted(), "on\n");
  }
  reset_for_all("synchronous_commit");
}

// Functions of a stranger under the names of the server's own, found first.
TEST_F(PostgresSettings, TheServersOwnFunctionsAreUsed) {
  const std::string role = cat("astray_", schema_);
  sql(cat("CREATE SCHEMA ", role, "; CREATE FUNCTION ", role, ".nextval(regclass) RETURNS bigint",
          " LANGUAGE sql AS 'SELECT 7::bigint'; CREATE FUNCTION ", role, ".clock_timestamp()",
          " RETURNS timestamptz LANGUAGE sql AS 'SELECT to_timestamp(0)'; CREATE ROLE ", role,
          " LOGIN SUPERUSER; ALTER ROLE ", role, " SET search_path = ", role, ", pg_catalog"));
  auto store = open_at({{.name = "127.0.0.1", .port = server_->port()}}, role);
  ASSERT_TRUE(store) << store.error().message;
  commit_in_all_ways(**store);
  const auto first = (*store)->commit({set("k", "1", 0)}, Sync::Durable);
  ASSERT_TRUE(committed(first));
  EXPECT_GT(std::get<Committed>(*first).store_time, std::chrono::hours(24));
  ASSERT_TRUE(committed((*store)->commit({set("k", "2", version(**store, "k"))}, Sync::Durable)));
  EXPECT_GT(version(**store, "k"), std::get<Committed>(*first).versions.front());
}

// A name that leads elsewhere from one connection to the next: a fail-over by name server or
// address. What a replica shows may be old, and nobody is told so by it.
TEST_F(PostgresSettings, AReplicaIsNeverAsked) {
  ASSERT_NE(open(), nullptr);
  PostgresServer replica({"max_connections=200"});
  replica.follow(*server_);
  const auto started = replica.start();
  ASSERT_TRUE(started) << started.error().message;
  const auto there = [](const PostgresServer& server) {
    return cat(server.folder(), "/.s.PGSQL.", server.port());
  };
  const std::string name = dir_.file(".s.PGSQL.5432");
  const auto lead_to = [&](const PostgresServer& server) {
    ::unlink(name.c_str());
    ASSERT_EQ(::symlink(there(server).c_str(), name.c_str()), 0);
  };
  const store::Host moving{.name = dir_.path(), .port = 5432};
  lead_to(replica);
  const auto refused = open_at({moving}, "postgres");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Unavailable);
  EXPECT_NE(refused.error().message.find("a read-only replica"), std::string::npos)
      << refused.error().message;
  // Of two, the one that can be written to.
  const store::Host primary{.name = "127.0.0.1", .port = server_->port()};
  EXPECT_TRUE(open_at({moving, primary}, "postgres"));

  lead_to(*server_);
  const auto store = open_at({moving}, "postgres");
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE(committed((*store)->commit({set("k", "v", 0)}, Sync::Durable)));
  lead_to(replica);
  sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stint'");
  const auto reading = (*store)->read({"k"});
  ASSERT_FALSE(reading) << "it asked the replica";
  EXPECT_NE(reading.error().message.find("a read-only replica"), std::string::npos)
      << reading.error().message;
  lead_to(*server_);
  EXPECT_EQ((*store)->read({"k"})->entries.front().value, "v");
}

}  // namespace
}  // namespace stint::test::plain_commits
