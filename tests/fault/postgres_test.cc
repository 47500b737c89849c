// The store in PostgreSQL: what only a real server with real faults can show.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "store/postgres/postgres_store.h"
#include "tests/support/servers.h"
#include "tests/support/tcp_proxy.h"

namespace stint::test {
namespace {

using store::Committed;
using store::Expect;
using store::Step;
using store::Sync;

Step step(Step::Kind kind, std::string key, std::string value = "") {
  Step out;
  out.kind = kind;
  out.key = std::move(key);
  out.value = std::move(value);
  return out;
}
Step set(std::string key, std::string value) {
  return step(Step::Kind::Set, std::move(key), std::move(value));
}
Step append(std::string prefix, std::string value) {
  return step(Step::Kind::Append, std::move(prefix), std::move(value));
}
Step absent(Step out) {
  out.expect = Expect::Absent;
  return out;
}
Step seen(Step out, store::Version version) {
  out.expect = Expect::Seen;
  out.version = version;
  return out;
}
Step timed(Step out, Step::TimerOp op, Millis ttl) {
  out.timer = op;
  out.ttl = ttl;
  return out;
}

bool committed(const Result<store::CommitAnswer>& answer) {
  return answer && std::holds_alternative<Committed>(*answer);
}

// So often that the statement is prepared: a fault then strikes the commit, and not its
// preparation, of which it is certain that nothing was done.
void warm_up(store::Store& store) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(committed(store.commit({set("k", "0")}, Sync::Durable)));
  }
}

std::vector<store::Entry> log_of(store::Store& store, const std::string& after = "") {
  return store.scan({.prefix = "log/", .after = after, .limit = 1000, .backwards = false})
      .value()
      .entries;
}

class PostgresFault : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!PostgresServer::missing().empty()) return;
    server_ =
        new PostgresServer({"autovacuum=off", "max_connections=200", "restart_after_crash=on"});
    const auto started = server_->start();
    ASSERT_TRUE(started) << started.error().message;
  }
  static void TearDownTestSuite() { delete std::exchange(server_, nullptr); }
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << PostgresServer::missing();
    if (!server_->running()) {
      ASSERT_TRUE(server_->start());
    }
    static int number = 0;
    schema_ = cat("fault_", ++number);
  }

  std::unique_ptr<store::Store> open(std::uint16_t port = 0, Millis timeout = Millis(30'000)) {
    // Who has little patience finds the schema made.
    if (timeout < Millis(30'000) && open() == nullptr) return nullptr;
    store::OpenRequest request;
    request.address.scheme = "postgres";
    request.address.user = user_;
    request.address.path = "postgres";
    request.address.hosts = {{.name = "127.0.0.1", .port = port == 0 ? server_->port() : port}};
    request.address.options["schema"] = schema_;
    request.timeout = timeout;
    auto store = store::PostgresStore::open(request, clock_);
    EXPECT_TRUE(store.has_value()) << (store ? "" : store.error().message);
    return store ? std::move(*store) : nullptr;
  }

  std::string sql(const std::string& text) const {
    const Finished done =
        run({.argv = {PostgresServer::program("psql"), "-XAtq", "-d", server_->url(), "-c", text},
             .env = {{"PGOPTIONS", cat("-c search_path=", schema_)}}});
    return done.exit_code == 0 ? done.out : cat("failed: ", done.err);
  }

  // psql that keeps its transaction open until the object goes.
  class Open {
   public:
    Open(const PostgresFault& test, const std::string& text)
        : file_(test.dir_.file("go")),
          child_(
              {.argv = {PostgresServer::program("psql"), "-XAtq", "-d", server_->url(), "-c",
                        "BEGIN", "-c", text, "-c", "\\echo there", "-c",
                        cat("\\! while [ ! -e ", file_, " ]; do sleep 0.01; done"), "-c", "COMMIT"},
               .env = {{"PGOPTIONS", cat("-c search_path=", test.schema_)}}}) {
      EXPECT_TRUE(wait_until([this] { return child_.out().find("there") != std::string::npos; }))
          << child_.err();
    }
    ~Open() { end(); }
    void end() {
      write_text(file_, "go");
      child_.wait(Millis(10'000));
    }

   private:
    std::string file_;
    Child child_;
  };

  static inline PostgresServer* server_ = nullptr;
  std::string schema_;
  std::string user_ = "postgres";
  os::SystemClock clock_;
  TempDir dir_;
};

TEST_F(PostgresFault, SixteenProcessesMakeTheSchemaAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 16; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto store = open(0, Millis(30'000));
      ::_exit(store && committed(store->commit({append("log/", "x")}, Sync::Durable)) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(log_of(*open()).size(), 16U);
}

// Each of two commits checks that the other's record is not there, and writes its own.
TEST_F(PostgresFault, AnAbsenceThatWasCheckedIsStillOneAtTheCommit) {
  const auto store = open();
  for (int round = 0; round < 60; ++round) {
    const std::string a = cat("k/", round, "a");
    const std::string b = cat("k/", round, "b");
    std::atomic<int> winners = 0;
    const auto race = [&](const std::string& mine, const std::string& other) {
      const auto answer =
          store->commit({set(mine, "v"), absent(step(Step::Kind::Check, other))}, Sync::Relaxed);
      ASSERT_TRUE(answer) << answer.error().message;
      if (committed(answer)) ++winners;
    };
    std::thread one([&] { race(a, b); });
    std::thread two([&] { race(b, a); });
    one.join();
    two.join();
    EXPECT_EQ(winners, 1) << round;
  }
}

TEST_F(PostgresFault, ACommitWaitsForAnAbsenceThatIsBeingChecked) {
  const auto store = open();
  ASSERT_TRUE(committed(store->commit({set("x", "1")}, Sync::Relaxed)));
  Open other(*this,
             "SELECT commit(NULL, NULL, NULL, '{0,1}', '{0,1}', '{a,b}', '{0,-1}', '{-1,-1}',"
             " '{\"\",v}', '{0,0}', '{0,0}', '{b}')");
  std::atomic<bool> done = false;
  std::thread writer([&] {
    EXPECT_TRUE(committed(store->commit({set("a", "mine")}, Sync::Relaxed)));
    done = true;
  });
  EXPECT_TRUE(wait_until([&] {
    return sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == "1\n";
  }));
  EXPECT_FALSE(done);
  other.end();
  writer.join();
  EXPECT_EQ(store->read({"a", "b"})->entries[1].value, "v");
}

TEST_F(PostgresFault, CommitsInOppositeOrdersDoNotDeadlock) {
  const auto store = open();
  ASSERT_TRUE(committed(store->commit({set("a", "0"), set("b", "0")}, Sync::Relaxed)));
  const std::string before =
      sql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        const std::string mine = t % 2 == 0 ? "a" : "b";
        const std::string other = t % 2 == 0 ? "b" : "a";
        EXPECT_TRUE(committed(store->commit(
            {set(mine, "v"), step(Step::Kind::Check, other), set(cat("n/", t, '/', i), "v")},
            Sync::Relaxed)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"), before);
}

// A transaction that appended and is still open is not jumped over.
TEST_F(PostgresFault, AnAppendedRecordIsNeverOvertaken) {
  const auto store = open();
  ASSERT_TRUE(committed(store->commit({append("log/", "first")}, Sync::Durable)));
  const auto values = [&] {
    std::string out;
    for (const auto& entry : log_of(*store)) out += entry.value + ' ';
    return out;
  };
  const auto watch = store->watch("log/");
  ASSERT_TRUE(watch);
  {
    Open slow(*this,
              "SELECT commit(NULL, NULL, NULL, '{0}', '{4}', '{log/}', '{-1}', '{-1}', '{slow}',"
              " '{0}', '{0}', '{log/}')");
    ASSERT_TRUE(committed(store->commit({append("log/", "quick")}, Sync::Durable)));
    EXPECT_EQ(values(), "first ");
  }
  EXPECT_EQ(values(), "first slow quick ");
  // Whoever waits hears of it although the one that was in the way says nothing.
  std::string seen_values;
  EXPECT_TRUE(wait_until([&] {
    if (!os::wait_readable({(*watch)->fd()}, now() + Millis(100)).front()) return false;
    (*watch)->acknowledge();
    seen_values = values();
    return seen_values == "first slow quick ";
  }));
}

// A record that changes between the mark and its commit is not slept through.
TEST_F(PostgresFault, AChangeThatWasUnderWayWhenTheWatchWasMadeWakesIt) {
  const auto store = open();
  ASSERT_TRUE(committed(store->commit({set("k", "old")}, Sync::Durable)));
  std::unique_ptr<Watch> watch;
  {
    Open slow(*this,
              "SELECT commit(NULL, NULL, NULL, '{0}', '{1}', '{k}', '{-1}', '{-1}', '{new}',"
              " '{0}', '{0}', '{k}')");
    watch = std::move(store->watch("k").value());
    EXPECT_EQ(store->read({"k"})->entries.front().value, "old");
    watch->acknowledge();
  }
  EXPECT_TRUE(wait_until([&] {
    if (!os::wait_readable({watch->fd()}, now() + Millis(100)).front()) return false;
    watch->acknowledge();
    return store->read({"k"})->entries.front().value == "new";
  }));
}

// The clock set back by an hour is the same as times of records moved on by an hour.
// EVIDENCE-OF: G4
TEST_F(PostgresFault, AClockThatIsSetBackLeavesNoLeaseMoreThanItsTtl) {
  const auto store = open();
  const Millis ttl(60'000);
  ASSERT_TRUE(committed(store->commit({timed(set("k", "v"), Step::TimerOp::Start, ttl),
                                       timed(set("dead", "v"), Step::TimerOp::Start, Millis(1))},
                                      Sync::Durable)));
  os::pause_for(Millis(5));
  ASSERT_TRUE(committed(store->commit({set("dead", "seen to be fired")}, Sync::Durable)));
  sql("UPDATE record SET at = at + interval '1 hour', fires_at = fires_at + interval '1 hour'");
  const auto entries = store->read({"k", "dead"})->entries;
  EXPECT_EQ(entries[0].timer.state, TimerState::Running);
  EXPECT_LE(*entries[0].timer.remaining, ttl);
  EXPECT_EQ(entries[1].timer.state, TimerState::Fired) << "it was seen to have fired";
  Step renew = timed(step(Step::Kind::Touch, "k"), Step::TimerOp::Extend, ttl);
  renew.demand = TimerState::Running;
  ASSERT_TRUE(committed(store->commit({renew}, Sync::Durable)));
  EXPECT_EQ(sql("SELECT fires_at < clock_timestamp() + interval '61 s' FROM record"
                " WHERE key = 'k'"),
            "t\n")
      << "a renewal counts by the clock as it is";
  Step revive = timed(step(Step::Kind::Touch, "dead"), Step::TimerOp::Extend, ttl);
  revive.demand = TimerState::Running;
  EXPECT_FALSE(committed(store->commit({revive}, Sync::Durable)));
}

// EVIDENCE-OF: G11
TEST_F(PostgresFault, AcknowledgedCommitsSurviveKill9AndVersionsNeverComeAgain) {
  const auto store = open();
  std::set<store::Version> versions;
  store::Version last = 0;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 40; ++i) {
      const auto answer = store->commit({set("k", cat(round, ' ', i)), append("log/", "x")},
                                        i % 2 == 0 ? Sync::Durable : Sync::Relaxed);
      ASSERT_TRUE(committed(answer)) << (answer ? "" : answer.error().message);
      last = std::get<Committed>(*answer).versions[0];
      EXPECT_TRUE(versions.insert(last).second) << "a version came again";
    }
    ASSERT_TRUE(committed(store->commit({set("sure", cat(round))}, Sync::Durable)));
    const auto keys = log_of(*store);
    ASSERT_TRUE(server_->restart());
    EXPECT_EQ(store->read({"sure"})->entries.front().value, cat(round));
    ASSERT_TRUE(committed(store->commit({append("log/", "after")}, Sync::Durable)));
    const auto more = log_of(*store, keys.back().key);
    EXPECT_EQ(more.back().value, "after") << "it sorts after all that were seen";
  }
}

TEST_F(PostgresFault, ALostTailDoesNotBringAVersionBack) {
  // The sequence as a crash leaves it that took unsynced commits with it.
  const auto store = open();
  const auto first = store->commit({set("k", "1")}, Sync::Relaxed);
  ASSERT_TRUE(committed(first));
  const auto second = store->commit({set("k", "2")}, Sync::Relaxed);
  const store::Version lost = std::get<Committed>(*second).versions[0];
  sql(cat("SELECT setval('version', ", lost - 1, "); UPDATE record SET version = ", lost - 1,
          "; TRUNCATE mark"));
  // As after a crash every connection is new.
  const auto again = open();
  const auto third = again->commit({set("k", "3")}, Sync::Relaxed);
  ASSERT_TRUE(committed(third));
  EXPECT_GT(std::get<Committed>(*third).versions[0], lost);
}

TEST_F(PostgresFault, AReplyThatIsCutOffIsUnknownAndWasDone) {
  TcpProxy proxy(server_->port());
  const auto store = open(proxy.port());
  warm_up(*store);
  proxy.drop_replies(TcpProxy::Dropped::Cut);
  const auto answer = store->commit({set("k", "1")}, Sync::Durable);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::UnknownOutcome) << answer.error().message;
  proxy.forward();
  EXPECT_TRUE(wait_until([&] { return store->read({"k"})->entries.front().value == "1"; }));
}

TEST_F(PostgresFault, AnUnansweredCommitIsUnknownInBoundedTime) {
  TcpProxy proxy(server_->port());
  const auto store = open(proxy.port(), Millis(700));
  warm_up(*store);
  for (const bool drop : {true, false}) {
    drop ? proxy.drop_replies(TcpProxy::Dropped::Silently) : proxy.black_hole();
    const MonoTime before = now();
    const auto answer = store->commit({set("k", "1")}, Sync::Durable);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::UnknownOutcome) << answer.error().message;
    EXPECT_LT(now() - before, Millis(3'000));
    const auto reading = store->read({"k"});
    ASSERT_FALSE(reading) << "nothing can be read";
    EXPECT_EQ(reading.error().code, Code::Unavailable);
    proxy.cut();
    proxy.forward();
    EXPECT_TRUE(wait_until([&] { return store->read({"k"}).has_value(); }));
    warm_up(*store);
  }
}

TEST_F(PostgresFault, AFrozenServerIsUnknownForACommitAndUnavailableForARead) {
  const auto store = open(0, Millis(700));
  warm_up(*store);
  server_->freeze();
  const auto answer = store->commit({set("k", "1")}, Sync::Durable);
  const auto reading = store->read({"k"});
  server_->thaw();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::UnknownOutcome);
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, Code::Unavailable);
  EXPECT_TRUE(wait_until([&] { return store->read({"k"}).has_value(); }));
}

TEST_F(PostgresFault, AServerThatIsGoneIsUnavailableAndFoundAgain) {
  const auto store = open(0, Millis(2'000));
  const auto watch = store->watch("k");
  ASSERT_TRUE(watch);
  server_->kill9();
  const auto answer = store->commit({set("k", "1")}, Sync::Durable);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Unavailable) << answer.error().message;
  EXPECT_TRUE(os::wait_readable({(*watch)->fd()}, now() + Millis(5'000)).front());
  ASSERT_TRUE(server_->start());
  EXPECT_TRUE(committed(store->commit({set("k", "1")}, Sync::Durable)));
  // The watch is heard again, without being made anew.
  EXPECT_TRUE(wait_until([&] { return sql("SELECT count(*) FROM waiter") == "1\n"; }));
  (*watch)->acknowledge();
  os::wait_readable({(*watch)->fd()}, now() + Millis(1'500));
  (*watch)->acknowledge();
  ASSERT_TRUE(committed(store->commit({set("k", "2")}, Sync::Durable)));
  EXPECT_TRUE(os::wait_readable({(*watch)->fd()}, now() + Millis(900)).front());
}

TEST_F(PostgresFault, AGuardThatHoldsARowForLongLetsCheckersThroughAndBoundsWriters) {
  const auto store = open(0, Millis(1'000));
  const auto own = store->commit({set("own/r", "v")}, Sync::Durable);
  ASSERT_TRUE(committed(own));
  ASSERT_TRUE(committed(store->commit(
      {timed(set("alive/r", "v"), Step::TimerOp::Start, Millis(60'000))}, Sync::Durable)));
  Open guard(*this, "SELECT 1 FROM record WHERE key = 'own/r' FOR SHARE");
  Step renew = timed(step(Step::Kind::Touch, "alive/r"), Step::TimerOp::Extend, Millis(60'000));
  renew.demand = TimerState::Running;
  const store::Version version = std::get<Committed>(*own).versions[0];
  EXPECT_TRUE(committed(
      store->commit({renew, seen(step(Step::Kind::Check, "own/r"), version)}, Sync::Durable)));
  const auto blocked = store->commit({set("own/r", "w")}, Sync::Durable);
  ASSERT_FALSE(blocked);
  EXPECT_EQ(blocked.error().code, Code::Unavailable) << "the server gave up: it was not done";
}

// The short way of a renewal says the same as the general way, which a third step makes it take.
TEST_F(PostgresFault, TheShortWayOfARenewalMeansTheSame) {
  const auto store = open();
  const auto own = store->commit({set("own/r", "v")}, Sync::Durable);
  const auto alive = store->commit(
      {timed(set("alive/r", "v"), Step::TimerOp::Start, Millis(60'000)),
       timed(set("alive/fired", "v"), Step::TimerOp::Start, Millis(1)), set("alive/none", "v")},
      Sync::Durable);
  ASSERT_TRUE(committed(own) && committed(alive));
  os::pause_for(Millis(5));
  const store::Version owned = std::get<Committed>(*own).versions[0];
  const store::Version living = std::get<Committed>(*alive).versions[0];
  const auto conflict = [&](std::vector<Step> steps) -> int {
    const auto answer = store->commit(steps, Sync::Durable);
    EXPECT_TRUE(answer) << answer.error().message;
    if (committed(answer)) return -1;
    return static_cast<int>(std::get<store::Conflict>(*answer).step);
  };
  for (const std::string key : {"alive/r", "alive/fired", "alive/none", "alive/absent"}) {
    for (const store::Version touched : {living, living + 7}) {
      for (const store::Version checked : {owned, owned + 7}) {
        for (const std::string checked_key : {"own/r", "own/absent"}) {
          Step touch = timed(seen(step(Step::Kind::Touch, key), touched), Step::TimerOp::Extend,
                             Millis(90'000));
          touch.demand = TimerState::Running;
          const Step check = seen(step(Step::Kind::Check, checked_key), checked);
          const Step more = step(Step::Kind::Check, "zz");
          EXPECT_EQ(conflict({check, touch}), conflict({check, touch, more})) << key << touched;
          EXPECT_EQ(conflict({touch, check}), conflict({touch, check, more})) << key << touched;
        }
      }
    }
  }
  const Timer timer = store->read({"alive/r"})->entries.front().timer;
  EXPECT_EQ(timer.ttl, Millis(90'000));
  EXPECT_GT(*timer.remaining, Millis(80'000));
}

TEST_F(PostgresFault, SixtyFourThreadsShareAFewConnections) {
  const auto store = open(0, Millis(20'000));
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(committed(store->commit({set(cat("k/", t), "v")}, Sync::Durable)));
      }
    });
  }
  const auto count =
      sql("SELECT count(*) <= 9 FROM pg_stat_activity WHERE application_name = 'stint'");
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, "t\n");
}

TEST_F(PostgresFault, MarksOfTheDeadAreClearedAway) {
  const auto store = open();
  sql("INSERT INTO waiter VALUES ('k', 1), ('k', 2)");
  ASSERT_TRUE(committed(store->commit({set("k", "v")}, Sync::Relaxed)));
  EXPECT_EQ(sql("SELECT count(*) FROM waiter"), "0\n");
  {
    const auto other = open();
    const auto watch = other->watch("k");
    EXPECT_EQ(sql("SELECT count(*) FROM waiter"), "1\n");
  }
  EXPECT_EQ(sql("SELECT count(*) FROM waiter"), "0\n") << "an orderly end leaves none";
}

TEST_F(PostgresFault, ASchemaOfAnOlderVersionIsBroughtUpToDate) {
  ASSERT_TRUE(committed(open()->commit({set("k", "v")}, Sync::Durable)));
  sql("DROP VIEW leases; DROP VIEW events; UPDATE meta SET version = 1");
  const auto store = open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->read({"k"})->entries.front().value, "v");
  EXPECT_EQ(sql("SELECT version FROM meta"), "6\n");
  EXPECT_EQ(sql("SELECT count(*) FROM leases"), "0\n");
}

// The step from version 4 is its owner's; everybody else goes on with what is there.
TEST_F(PostgresFault, WhoDoesNotOwnASchemaWorksWithTheFunctionsOfTheVersionBefore) {
  ASSERT_TRUE(committed(open()->commit({set("k", "v")}, Sync::Durable)));
  const auto version = [&] { return sql("SELECT version FROM meta"); };
  EXPECT_EQ(version(), "6\n");
  EXPECT_EQ(sql(cat("UPDATE meta SET version = 4; CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA ",
                    schema_, " TO guest; GRANT ALL ON ALL TABLES IN SCHEMA ", schema_,
                    " TO guest; GRANT ALL ON ALL SEQUENCES IN SCHEMA ", schema_, " TO guest")),
            "");
  user_ = "guest";
  {
    const auto guest = open();
    ASSERT_NE(guest, nullptr);
    EXPECT_TRUE(committed(guest->commit({set("k", "w")}, Sync::Durable)));
  }
  EXPECT_EQ(version(), "4\n");
  user_ = "postgres";
  EXPECT_EQ(open()->read({"k"})->entries.front().value, "w");
  EXPECT_EQ(version(), "6\n");
}

}  // namespace
}  // namespace stint::test
