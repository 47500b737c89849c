// Commits in PostgreSQL as plain statements: they mean what the function means, also when others
// commit at the same moment; and the gate that spares the checks of what is hardly ever written.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "store/postgres/postgres_store.h"
#include "tests/support/servers.h"

namespace stint::test::plain_commits {
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
Step seen(Step out, store::Version version) {
  out.expect = version == 0 ? Expect::Absent : Expect::Seen;
  out.version = version;
  return out;
}
Step set(std::string key, std::string value, store::Version version) {
  return seen(step(Step::Kind::Set, std::move(key), std::move(value)), version);
}

bool committed(const Result<store::CommitAnswer>& answer) {
  return answer && std::holds_alternative<Committed>(*answer);
}

class PostgresPlain : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!PostgresServer::missing().empty()) return;
    server_ = new PostgresServer({"autovacuum=off", "max_connections=200"});
    const auto started = server_->start();
    ASSERT_TRUE(started) << started.error().message;
  }
  static void TearDownTestSuite() { delete std::exchange(server_, nullptr); }
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << PostgresServer::missing();
    static int number = 0;
    schema_ = cat("plain_", ++number);
  }

  std::unique_ptr<store::Store> open() {
    store::OpenRequest request;
    request.address.scheme = "postgres";
    request.address.user = "postgres";
    request.address.path = "postgres";
    request.address.hosts = {{.name = "127.0.0.1", .port = server_->port()}};
    request.address.options["schema"] = schema_;
    request.timeout = Millis(30'000);
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

  // psql that keeps its transaction open until it is told to end.
  class Held {
   public:
    Held(const PostgresPlain& test, const std::string& text)
        : file_(test.dir_.file("go")),
          child_(
              {.argv = {PostgresServer::program("psql"), "-XAtq", "-d", server_->url(), "-c",
                        "BEGIN", "-c", text, "-c", "\\echo there", "-c",
                        cat("\\! while [ ! -e ", file_, " ]; do sleep 0.01; done"), "-c", "COMMIT"},
               .env = {{"PGOPTIONS", cat("-c search_path=", test.schema_)}}}) {
      EXPECT_TRUE(wait_until([this] { return child_.out().find("there") != std::string::npos; }))
          << child_.err();
    }
    ~Held() { end(); }
    void end() {
      write_text(file_, "go");
      child_.wait(Millis(10'000));
    }

   private:
    std::string file_;
    Child child_;
  };

  // Whether so many wait for a lock of this kind: "relation" is the gate, others are rows.
  bool wait_for(const std::string& what, int count) const {
    return wait_until([&] {
      return sql(cat("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND"
                     " (wait_event = 'relation') = ",
                     what == "relation" ? "true" : "false")) == cat(count, "\n");
    });
  }

  store::Version version(store::Store& store, const std::string& key) {
    return store.read({key})->entries.front().version;
  }
  // Twice, so that the connection knows the mark and has the statement.
  void warm_up(store::Store& store) {
    ASSERT_TRUE(committed(store.commit({set("meta/store", "1", 0)}, Sync::Durable)));
    ASSERT_TRUE(committed(store.commit({set("k", "0", 0)}, Sync::Durable)));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(committed(checked(store, version(store, "k"))));
  }
  // Writes k, if the store's own record is as it was seen.
  Result<store::CommitAnswer> checked(store::Store& store, store::Version of_k) {
    return checked(store, of_k, version(store, "meta/store"));
  }
  static Result<store::CommitAnswer> checked(store::Store& store, store::Version of_k,
                                             store::Version meta) {
    return store.commit({set("k", "v", of_k), seen(step(Step::Kind::Check, "meta/store"), meta)},
                        Sync::Durable);
  }

  static inline PostgresServer* server_ = nullptr;
  std::string schema_;
  os::SystemClock clock_;
  TempDir dir_;
};

// The check has been made, the commit has not: who would change what was checked waits.   G1
TEST_F(PostgresPlain, AWriterOfTheStoresRecordWaitsForWhoHasCheckedIt) {
  const auto store = open();
  warm_up(*store);
  const store::Version meta = version(*store, "meta/store");
  const store::Version of_k = version(*store, "k");
  Held row(*this, "SELECT 1 FROM record WHERE key = 'k' FOR UPDATE");
  std::atomic<bool> written = false;
  std::thread checker([&] { EXPECT_TRUE(committed(checked(*store, of_k, meta))); });
  EXPECT_TRUE(wait_for("row", 1));
  std::thread writer([&] {
    EXPECT_TRUE(committed(store->commit({set("meta/store", "2", meta)}, Sync::Durable)));
    written = true;
  });
  EXPECT_TRUE(wait_for("relation", 1)) << "it went without the gate";
  EXPECT_FALSE(written);
  row.end();
  checker.join();
  writer.join();
}

TEST_F(PostgresPlain, WhoChecksTheStoresRecordWaitsForItsWriterAndSeesWhatWasWritten) {
  const auto store = open();
  warm_up(*store);
  const store::Version meta = version(*store, "meta/store");
  const store::Version of_k = version(*store, "k");
  Held writer(*this, cat("SELECT commit(NULL, NULL, NULL, '{0}', '{1}', '{meta/store}', '{", meta,
                         "}', '{-1}', '{2}', '{0}', '{0}', '{meta/store}')"));
  std::thread checker([&] {
    const auto answer = checked(*store, of_k, meta);
    ASSERT_TRUE(answer) << answer.error().message;
    const auto* conflict = std::get_if<store::Conflict>(&*answer);
    ASSERT_NE(conflict, nullptr) << "it went by a record that was being written";
    EXPECT_EQ(conflict->step, 1U);
  });
  EXPECT_TRUE(wait_for("relation", 1)) << "it went without the gate";
  writer.end();
  checker.join();
  EXPECT_EQ(version(*store, "k"), of_k);
}

// A call of the old functions may be under way: until it has ended the gate is not relied on.
TEST_F(PostgresPlain, AnUpdatedSchemaReliesOnTheGateWhenOldCallsHaveEnded) {
  {
    const auto store = open();
    warm_up(*store);
  }
  sql("UPDATE meta SET version = 2");
  Held old(*this, "SELECT 1");
  {
    const auto store = open();
    EXPECT_EQ(sql("SELECT version FROM meta"), "3\n");
    const store::Version meta = version(*store, "meta/store");
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(committed(checked(*store, version(*store, "k"))));
    const store::Version of_k = version(*store, "k");
    // As an old call would: the row alone is locked. (The file that `old` waits for is another.)
    const TempDir apart;
    const std::string go = apart.file("go");
    Child writer(
        {.argv = {PostgresServer::program("psql"), "-XAtq", "-d", server_->url(), "-c", "BEGIN",
                  "-c",
                  cat("SELECT 1 FROM ", schema_, ".record WHERE key = 'meta/store' FOR",
                      " UPDATE; UPDATE ", schema_,
                      ".record SET version = version + 1 WHERE key = 'meta/store'"),
                  "-c", "\\echo there", "-c",
                  cat("\\! while [ ! -e ", go, " ]; do sleep 0.01; done"), "-c", "COMMIT"}});
    ASSERT_TRUE(wait_until([&] { return writer.out().find("there") != std::string::npos; }));
    std::thread checker([&] { EXPECT_FALSE(committed(checked(*store, of_k, meta))); });
    EXPECT_TRUE(wait_for("row", 1)) << "it relied on the gate";
    write_text(go, "go");
    writer.wait(Millis(10'000));
    checker.join();
  }
  old.end();
  const auto store = open();
  EXPECT_EQ(sql("SELECT version FROM meta"), "4\n");
}

// Random commits twice: plainly, and the general way, which one more step makes them take.
TEST_F(PostgresPlain, MeansTheSameAsTheGeneralWay) {
  const auto store = open();
  warm_up(*store);
  std::mt19937 random(7);
  const auto pick = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  std::map<std::string, store::Version> last;
  const auto make = [&](const std::string& space, std::mt19937& dice) {
    const auto roll = [&](int below) {
      return static_cast<int>(dice() % static_cast<unsigned>(below));
    };
    std::vector<Step> steps;
    for (const std::string& name : names) {
      if (roll(2) == 0) continue;
      Step one = step(static_cast<Step::Kind>(roll(4)), cat(space, name), cat("v", roll(1000)));
      const int expect = roll(8);
      if (expect == 0) one.expect = Expect::Absent;
      if (expect > 2) one = seen(one, last[one.key] + (roll(12) == 0 ? 1 : 0));
      if (roll(3) == 0) one.demand = static_cast<TimerState>(roll(3));
      one.timer = static_cast<Step::TimerOp>(roll(4));
      if (one.timer == Step::TimerOp::Extend) one.demand = TimerState::Running;
      one.ttl = roll(3) == 0 ? Millis(1) : Millis(60'000);
      steps.push_back(one);
    }
    if (roll(2) == 0) std::ranges::reverse(steps);
    if (roll(3) == 0) steps.push_back(step(Step::Kind::Append, cat("log", space), "x"));
    if (std::ranges::all_of(steps, [](const Step& s) { return s.kind == Step::Kind::Check; })) {
      steps.push_back(step(Step::Kind::Set, cat(space, "e"), "x"));
    }
    return steps;
  };
  int conflicts = 0;
  for (int round = 0; round < 1500; ++round) {
    const auto dice = std::mt19937(random());
    const Sync sync = pick(4) == 0 ? Sync::Durable : Sync::Relaxed;
    std::vector<int> answers;
    for (const std::string space : {"p/", "q/"}) {
      std::mt19937 same = dice;
      auto steps = make(space, same);
      if (space == "q/") steps.push_back(step(Step::Kind::Check, "zz"));
      const auto answer = store->commit(steps, sync);
      ASSERT_TRUE(answer) << answer.error().message;
      const auto* conflict = std::get_if<store::Conflict>(&*answer);
      answers.push_back(conflict == nullptr ? -1 : static_cast<int>(conflict->step));
    }
    ASSERT_EQ(answers[0], answers[1]) << round;
    if (answers[0] >= 0) ++conflicts;
    os::pause_for(Millis(2));  // what fires in a millisecond has fired in both
    for (const std::string name : {"a", "b", "c", "d", "e"}) {
      const auto two = store->read({cat("p/", name), cat("q/", name)})->entries;
      ASSERT_EQ(two[0].value, two[1].value) << round << name;
      ASSERT_EQ(two[0].timer.state, two[1].timer.state) << round << name;
      ASSERT_EQ(two[0].timer.ttl, two[1].timer.ttl) << round << name;
      ASSERT_EQ(two[0].present(), two[1].present());
      for (const store::Entry& entry : two) last[entry.key] = entry.version;
    }
  }
  EXPECT_GT(conflicts, 100);
  EXPECT_LT(conflicts, 1400);
  const auto logged = [&](const std::string& prefix) { return store->appended(prefix).value(); };
  EXPECT_EQ(logged("logp/") > 0, logged("logq/") > 0);
}

// Eight count together: each number is given once, and each leaves one line.
TEST_F(PostgresPlain, ManyAtOnceLoseNothing) {
  const auto store = open();
  warm_up(*store);
  ASSERT_TRUE(committed(store->commit({set("n", "0", 0), set("m", "0", 0)}, Sync::Relaxed)));
  constexpr int kThreads = 8;
  constexpr int kEach = 40;
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int done = 0; done < kEach;) {
        const auto two = store->read({"n", "m"})->entries;
        const std::string next = std::to_string(std::stoi(two[0].value) + 1);
        const std::string once = cat("once/", next);
        auto steps = std::vector{set("n", next, two[0].version), set("m", next, two[1].version),
                                 step(Step::Kind::Append, "log/", next)};
        if (t % 2 == 0) steps.push_back(set(once, "x", 0));
        if (t % 2 != 0) steps.push_back(step(Step::Kind::Set, once, "y"));
        const auto answer = store->commit(steps, Sync::Relaxed);
        ASSERT_TRUE(answer) << answer.error().message;
        if (!committed(answer)) continue;
        ++done;
        ++made;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto two = store->read({"n", "m"})->entries;
  EXPECT_EQ(two[0].value, std::to_string(kThreads * kEach));
  EXPECT_EQ(two[1].value, two[0].value);
  EXPECT_EQ(sql("SELECT count(*), count(DISTINCT value) FROM record WHERE key >= 'log/'"
                " AND key < 'log0'"),
            cat(made.load(), '|', made.load(), '\n'));
  EXPECT_EQ(sql("SELECT count(*) FROM record WHERE key >= 'once/' AND key < 'once0'"),
            cat(made.load(), '\n'));
}

// Whoever registers while a commit is under way reads what it wrote, or is woken by it.
TEST_F(PostgresPlain, NoWakeUpIsLost) {
  const auto writing = open();
  const auto waiting = open();
  warm_up(*writing);
  store::Version last = version(*writing, "k");
  std::mt19937 random(3);
  for (int round = 0; round < 120; ++round) {
    const std::string key = cat("w/", round);
    const auto pause = std::chrono::microseconds(random() % 3000);
    std::thread writer([&] {
      os::pause_for(pause);
      const auto answer = writing->commit({set(key, "new", 0)}, Sync::Relaxed);
      EXPECT_TRUE(committed(answer));
    });
    const auto watch = waiting->watch(key);
    ASSERT_TRUE(watch);
    if (!waiting->read({key})->entries.front().present()) {
      EXPECT_TRUE(os::wait_readable({(*watch)->fd()}, now() + Millis(3'000)).front()) << round;
    }
    writer.join();
  }
  EXPECT_EQ(version(*writing, "k"), last);
}

}  // namespace
}  // namespace stint::test::plain_commits
