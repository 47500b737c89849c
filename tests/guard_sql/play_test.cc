// The zombie's play in SQL: A admits and is frozen at each step of its transaction, B takes over,
// seals, reads, writes; A continues. At each isolation level, with the fence's own row and with
// own/R in the same database.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <random>
#include <thread>

#include "base/text.h"
#include "bench/client.h"
#include "tests/guard_sql/session.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

// What a writer does in one transaction, step by step: reads outside of it, then writes what it had
// read, plus one. A lost update or a late write shows in `doc` and `log`.
class Writer {
 public:
  Writer(const std::string& database, std::string isolation)
      : session(database), isolation_(std::move(isolation)) {}

  void take(int token) {
    token_ = token;
    step_ = 0;
    state.clear();
  }
  void read() { seen_ = std::atoi(session.value("SELECT n FROM doc").c_str()); }
  static constexpr int kSteps = 4;
  bool over() const { return step_ == kSteps || !state.empty(); }
  // Sends the next step; a refusal ends the transaction.
  void send_next() {
    const std::string steps[kSteps] = {cat("BEGIN ISOLATION LEVEL ", isolation_),
                                       cat("SELECT stint.admit('r', ", token_, ", '", kLife, "')"),
                                       cat("UPDATE doc SET n = ", seen_ + 1, ", token = ", token_,
                                           "; INSERT INTO log SELECT n, token FROM doc"),
                                       "COMMIT"};
    session.send(steps[step_]);
  }
  void finish_step() {
    state = session.answer().state;
    if (!state.empty()) {
      session.must("ROLLBACK");
      return;
    }
    ++step_;
  }
  void next() {
    send_next();
    finish_step();
  }
  void all() {
    while (!over()) next();
  }
  bool accepted() const { return step_ == kSteps; }

  Session session;
  std::string state;  // of the refusal

 private:
  const std::string isolation_;
  int token_ = 0;
  int step_ = 0;
  int seen_ = 0;
};

struct World {
  std::string isolation;
  bool store_here = false;
};

class Play : public ::testing::TestWithParam<World> {
 protected:
  void SetUp() override {
    database_ = guarded_database();
    admin_ = std::make_unique<Session>(database_);
    admin_->must(
        "CREATE TABLE doc (n int, token int); INSERT INTO doc VALUES (0, 0);"
        "CREATE TABLE log (n int PRIMARY KEY, token int)");
    if (GetParam().store_here) {
      admin_->must(
          cat("CREATE TABLE stint.record (key bytea PRIMARY KEY, value bytea NOT NULL, at "
              "timestamptz DEFAULT now(), fires_at timestamptz); INSERT INTO stint.record (key, "
              "value) VALUES ('meta/store', '{\"generation\":\"",
              kLife, "\"}'), ('own/r', '{\"token\":1,\"claim\":\"c\"}')"));
    }
    taker_ = std::make_unique<Session>(database_);
  }

  // What the store does when B acquires, and B's seal. Sent, not waited for.
  void send_take_over(int token) {
    if (GetParam().store_here) {
      taker_->send(cat("UPDATE stint.record SET value = '{\"token\":", token,
                       ",\"claim\":\"c\"}' WHERE key = 'own/r'"));
    } else {
      taker_->must(
          cat("SELECT stint.announce_seal('r', ", token, ", '", kLife, "', ", token, ", true)"));
      taker_->send(seal_sql("r", token));
    }
  }

  // Nothing was lost, and no token came after a higher one.
  void expect_whole(int accepted) {
    EXPECT_EQ(admin_->value("SELECT n FROM doc"), std::to_string(accepted));
    EXPECT_EQ(admin_->value("SELECT count(*) FROM (SELECT token, lag(token) OVER (ORDER BY n) AS "
                            "before FROM log) l WHERE token < before"),
              "0");
  }

  std::string database_;
  std::unique_ptr<Session> admin_;
  std::unique_ptr<Session> taker_;
};

// One play: A stands after `frozen_at` steps when B takes over. True: A's write counted.
// EVIDENCE-OF: G5
TEST_P(Play, AtNoStepDoesTheZombieWriteAfterTheSeal) {
  Writer a(database_, GetParam().isolation);
  Writer b(database_, GetParam().isolation);
  Session watcher(database_);
  std::mt19937 dice(7);
  int token = 1;
  int accepted = 0;
  int blocked_seals = 0;
  int refused = 0;
  send_take_over(token);
  ASSERT_EQ(taker_->answer().state, "");
  const int count = plays(120);
  for (int i = 0; i < count; ++i) {
    a.take(token);
    a.read();
    const int frozen_at = static_cast<int>(dice() % Writer::kSteps);
    for (int s = 0; s < frozen_at; ++s) a.next();
    ASSERT_EQ(a.state, "");
    // B acquires, seals; it waits if and only if A stands in a guarded transaction.
    send_take_over(++token);
    const bool waits = blocked(*taker_, watcher);
    ASSERT_EQ(waits, frozen_at >= 2) << frozen_at;
    blocked_seals += waits ? 1 : 0;
    const bool a_first = waits || dice() % 2 == 0;
    if (!waits) {
      ASSERT_EQ(taker_->answer().state, "");
    }
    if (a_first) a.all();
    if (waits) {
      ASSERT_EQ(taker_->answer().state, "");
    }
    b.take(token);
    b.read();
    b.all();
    ASSERT_TRUE(b.accepted()) << b.state;
    a.all();
    // In time only if it had been admitted before the seal.
    EXPECT_EQ(a.accepted(), frozen_at >= 2) << frozen_at << ' ' << a.state;
    accepted += 1 + (a.accepted() ? 1 : 0);
    refused += a.accepted() ? 0 : 1;
    ASSERT_FALSE(HasFailure()) << "play " << i << ", frozen after step " << frozen_at;
  }
  expect_whole(accepted);
  EXPECT_GT(blocked_seals, 0);
  EXPECT_GT(refused, 0);
  std::printf("%d plays, %d seals waited, %d zombies refused, %d writes\n", count, blocked_seals,
              refused, accepted);
}

// A snapshot from before the seal: the lock says so, by name.
TEST_P(Play, ASealSinceTheSnapshotShowsAsASerializationFailure) {
  send_take_over(1);
  ASSERT_EQ(taker_->answer().state, "");
  Session a(database_);
  a.must(cat("BEGIN ISOLATION LEVEL ", GetParam().isolation, "; SELECT n FROM doc"));
  send_take_over(2);
  ASSERT_EQ(taker_->answer().state, "");
  const std::string state = a.state_of(cat("SELECT stint.admit('r', 1, '", kLife, "')"));
  EXPECT_EQ(state, GetParam().isolation == "READ COMMITTED" ? "ST001" : "40001");
  EXPECT_EQ(a.state_of("SELECT 1"), "25P02");
}

INSTANTIATE_TEST_SUITE_P(
    Sql, Play,
    ::testing::Values(World{"READ COMMITTED", false}, World{"REPEATABLE READ", false},
                      World{"SERIALIZABLE", false}, World{"READ COMMITTED", true},
                      World{"REPEATABLE READ", true}, World{"SERIALIZABLE", true}),
    [](const auto& one) {
      std::string name = one.param.isolation;
      std::erase(name, ' ');
      return cat(name, one.param.store_here ? "Own" : "Fence");
    });

// 8 writers with different tokens and 2 with the same, at once.
// EVIDENCE-OF: G5
TEST(SqlRace, AcceptedTokensNeverDecreaseAndTheHighestStays) {
  constexpr int kWriters = 10;
  const std::string database = guarded_database();
  Session admin(database);
  admin.must(
      "CREATE TABLE doc (n int, token int); INSERT INTO doc VALUES (0, 0);"
      "CREATE TABLE log (n int PRIMARY KEY, token int)");
  const int rounds = plays(100);
  std::atomic<int> strange = 0;
  std::atomic<int> accepted = 0;
  std::barrier together(kWriters);
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      Session session(database);
      for (int round = 0; round < rounds; ++round) {
        together.arrive_and_wait();
        // The last three share the highest.
        const int token = round * 8 + std::min(w, 7) + 1;
        const std::string write = cat("BEGIN; SELECT stint.admit('r', ", token, ", '", kLife,
                                      "'); UPDATE doc SET n = n + 1, token = ", token,
                                      "; INSERT INTO log SELECT n, token FROM doc; COMMIT");
        for (const std::string& sql :
             {cat("SELECT stint.announce_seal('r', ", token, ", '", kLife, "', ", token, ", true)"),
              seal_sql("r", token), write}) {
          const std::string state = session.state_of(sql);
          if (state.empty()) {
            accepted += sql == write ? 1 : 0;
            continue;
          }
          if (sql == write) session.must("ROLLBACK");
          // Above the fence: a higher one was announced and not yet made.
          if (state != "ST001" && state != "ST008") ++strange;
          break;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(strange, 0);
  EXPECT_GE(accepted, 3 * rounds);
  EXPECT_EQ(admin.value("SELECT count(*) FROM log"), std::to_string(accepted));
  EXPECT_EQ(admin.value("SELECT count(*) FROM (SELECT token, lag(token) OVER (ORDER BY n) AS "
                        "before FROM log) l WHERE token < before"),
            "0");
  EXPECT_EQ(admin.value("SELECT token = (SELECT max(token) FROM log) FROM doc"), "t");
  EXPECT_EQ(admin.value("SELECT token FROM stint.fences"), std::to_string(rounds * 8));
  std::printf("%d rounds, %d writes accepted\n", rounds, accepted.load());
}

// Writers whose transactions overlap share the lock and pass by who waits for it.
TEST(SqlSeal, IsNotStarvedByOverlappingWritersOfAnOlderToken) {
  const std::string database = guarded_database();
  Session admin(database);
  admin.must("CREATE TABLE t (i int)");
  seal(admin, "r", 1);
  std::atomic<bool> stop = false;
  std::atomic<int> going = 0;
  std::vector<std::thread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&] {
      Session session(database);
      bool first = true;
      while (!stop) {
        if (!session.state_of("BEGIN; SELECT stint.admit('r', 1); SELECT pg_sleep(0.05); COMMIT")
                 .empty()) {
          break;
        }
        if (first) ++going;
        first = false;
      }
    });
  }
  EXPECT_TRUE(wait_until([&] { return going == 4; }));
  const MonoTime before = now();
  seal(admin, "r", 2);
  EXPECT_LT(now() - before, Millis(20'000)) << "who is starved gives up after 32 s";
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

// Also where nobody waits: who announced it may have died.
TEST(SqlSeal, OnceAnnouncedOlderTokensBeginNoMore) {
  const std::string database = guarded_database();
  Session admin(database);
  seal(admin, "r", 1);
  Session old(database);
  old.must("BEGIN; SELECT stint.admit('r', 1)");
  admin.must(cat("SELECT stint.announce_seal('r', 2, '", kLife, "', 2, true)"));
  Session sealer(database);
  for (const bool waiting : {false, true}) {
    if (waiting) {
      sealer.send(seal_sql("r", 2));
      EXPECT_TRUE(blocked(sealer, admin));
    }
    for (const char* level : {"READ COMMITTED", "REPEATABLE READ"}) {
      Session late(database);
      late.must("SET statement_timeout = '10s'");
      late.must(cat("BEGIN ISOLATION LEVEL ", level));
      EXPECT_EQ(late.state_of("SELECT stint.admit('r', 1)"), "ST001") << level << ' ' << waiting;
    }
  }
  old.must("COMMIT");
  EXPECT_EQ(sealer.answer().state, "");
}

// The lock is the transaction's: no call gives it back before its end.
TEST(SqlSeal, WaitsForAWriterWhateverItUnlocks) {
  const std::string database = guarded_database();
  Session admin(database);
  seal(admin, "r", 1);
  Session writer(database);
  writer.must("BEGIN; SELECT stint.admit('r', 1); SELECT pg_advisory_unlock_all()");
  writer.must("SELECT pg_advisory_unlock_shared(stint.lock_of('r'))");
  Session sealer(database);
  sealer.send(seal_sql("r", 2));
  EXPECT_TRUE(blocked(sealer, admin));
  writer.must("COMMIT");
  EXPECT_EQ(sealer.answer().state, "");
}

// Who comes with a search_path of its own is judged all the same.
TEST(SqlAdmit, TakesNoNotionOfEqualFromItsCaller) {
  const std::string database = guarded_database();
  Session admin(database);
  seal(admin, "r", 5);
  admin.must(
      "CREATE SCHEMA odd; CREATE FUNCTION odd.yes(bigint, bigint) RETURNS boolean LANGUAGE sql AS "
      "'SELECT true'; CREATE OPERATOR odd.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = "
      "odd.yes);"
      "CREATE FUNCTION odd.pg_try_advisory_xact_lock_shared(bigint) RETURNS boolean LANGUAGE sql "
      "AS 'SELECT true';"
      "CREATE COLLATION odd.\"C\" (provider = icu, locale = 'und', deterministic = false)");
  Session odd(database);
  odd.must("SET search_path = odd, pg_catalog");
  EXPECT_EQ(odd.state_of("SELECT stint.admit('r', 4)"), "ST001");
  odd.must("BEGIN; SELECT stint.admit('r', 5)");
  Session sealer(database);
  sealer.send(seal_sql("r", 6));
  EXPECT_TRUE(blocked(sealer, admin));
  odd.must("COMMIT");
  EXPECT_EQ(sealer.answer().state, "");
}

// A number means nothing outside its store's life.
TEST(SqlAdmit, TheSameTokenOfAnotherGenerationIsNotAdmitted) {
  const std::string database = guarded_database();
  Session admin(database);
  seal(admin, "r", 5);
  EXPECT_EQ(admin.state_of(cat("SELECT stint.admit('r', 5, '", std::string(32, '2'), "')")),
            "ST008");
  EXPECT_EQ(admin.value(cat("SELECT stint.admit('r', 5, '", kLife, "')")), "admitted");
  EXPECT_EQ(admin.value("SELECT stint.admit('r', 5, '')"), "admitted");
}

TEST(SqlSeveral, InSortedOrderNeverDeadlock) {
  const std::string database = guarded_database();
  Session admin(database);
  const std::vector<std::string> names = {"a", "b", "c"};
  for (const std::string& name : names) seal(admin, name, 1);
  std::atomic<int> tokens[3] = {1, 1, 1};
  std::atomic<int> deadlocks = 0;
  std::atomic<int> done = 0;
  const int rounds = plays(60);
  std::vector<std::thread> threads;
  for (int w = 0; w < 6; ++w) {
    threads.emplace_back([&, w] {
      Session session(database);
      std::mt19937 dice(static_cast<unsigned>(w));
      std::vector<int> order = {0, 1, 2};
      for (int i = 0; i < rounds; ++i) {
        std::shuffle(order.begin(), order.end(), dice);
        std::string resources;
        std::string shown;
        for (const int n : order) {
          resources +=
              cat(resources.empty() ? "" : ",", "'", names[static_cast<std::size_t>(n)], "'");
          shown += cat(shown.empty() ? "" : ",", tokens[n].load());
        }
        const std::string state =
            session.state_of(cat("BEGIN; SELECT stint.admit_all(ARRAY[", resources, "], ARRAY[",
                                 shown, "]); SELECT pg_sleep(0.001); COMMIT"));
        if (state.empty()) {
          ++done;
        } else {
          session.must("ROLLBACK");
        }
        if (state == "40P01") ++deadlocks;
      }
    });
  }
  std::thread sealer([&] {
    Session session(database);
    for (int i = 0; i < rounds; ++i) {
      const int n = i % 3;
      const int next = tokens[n] + 1;
      seal(session, names[static_cast<std::size_t>(n)], next);
      tokens[n] = next;
    }
  });
  for (std::thread& thread : threads) thread.join();
  sealer.join();
  EXPECT_EQ(deadlocks, 0);
  EXPECT_GT(done, 0);
}

// Where admit() waits for a lock the order is what keeps two of them from waiting for each other:
// the leases live here and have ended, so that each own/R is locked alone.
TEST(SqlSeveral, TwoThatNameTheirResourcesInOppositeOrdersBothGetThrough) {
  const std::string database = guarded_database();
  bench::Client store(cat("postgres://postgres@127.0.0.1:", server().port(), "/", database));
  for (const char* name : {"a", "b"}) store.release(store.take(name));
  Session holder(database);
  Session watcher(database);
  Session forth(database);
  Session back(database);
  holder.must("BEGIN");
  holder.must("SELECT FROM stint.record WHERE key = 'own/a'::bytea FOR UPDATE");
  forth.must("BEGIN");
  forth.send("SELECT stint.admit_all(ARRAY['a', 'b'], ARRAY[1, 1])");
  ASSERT_TRUE(blocked(forth, watcher));
  back.must("BEGIN");
  back.send("SELECT stint.admit_all(ARRAY['b', 'a'], ARRAY[1, 1])");
  ASSERT_TRUE(blocked(back, watcher));
  holder.must("COMMIT");
  EXPECT_EQ(forth.answer().state, "");
  forth.must("COMMIT");
  EXPECT_EQ(back.answer().state, "");
  back.must("COMMIT");
}

}  // namespace
}  // namespace stint::test
