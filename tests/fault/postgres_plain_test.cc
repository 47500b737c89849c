// Commits in PostgreSQL as plain statements: they mean what the function means, also when others
// commit at the same moment; and the gate that spares the checks of what is hardly ever written.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "os/pause.h"
#include "tests/fault/postgres_plain_fixture.h"

namespace stint::test::plain_commits {
namespace {

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

// A renewal that was in time when it was sent, and waits for a row that somebody only looks at, or
// inserts and does not. G3
class PostgresPlainRenewal : public PostgresPlain {
 protected:
  // `along` makes it take another way than the short one.
  void wait_for_row(const std::string& key, const std::vector<Step>& along = {}) {
    wait_for_other(cat("SELECT 1 FROM record WHERE key = '", key, "' FOR UPDATE"), along);
  }
  // `along` inserts "new".
  void wait_for_insertion(const std::vector<Step>& along, const std::vector<Step>& beside = {}) {
    wait_for_other("INSERT INTO record (key, value, version, at) VALUES ('new', '', 1, now())",
                   along, beside);
  }

 private:
  // `beside`: a commit of its own that travels with it.
  void wait_for_other(const std::string& other, const std::vector<Step>& along,
                      const std::vector<Step>& beside = {});
};

void PostgresPlainRenewal::wait_for_other(const std::string& other, const std::vector<Step>& along,
                                          const std::vector<Step>& beside) {
  const auto store = open();
  auto* const many = dynamic_cast<store::PostgresStore*>(store.get());
  warm_up(*store);
  Step make = set("alive", "v", 0);
  make.timer = Step::TimerOp::Start;
  make.ttl = Millis(3'000);
  ASSERT_TRUE(committed(store->commit({make, set("own", "v", 0)}, Sync::Durable)));
  Step touch = seen(step(Step::Kind::Touch, "alive"), version(*store, "alive"));
  touch.timer = Step::TimerOp::Extend;
  touch.ttl = make.ttl;
  touch.demand = TimerState::Running;
  std::vector<Step> renewal = {touch, seen(step(Step::Kind::Check, "own"), version(*store, "own"))};
  renewal.insert(renewal.end(), along.begin(), along.end());
  const auto state = [&] { return store->read({"alive"})->entries.front().timer.state; };
  const auto renew = [&] {
    if (beside.empty()) return store->commit(renewal, Sync::Durable);
    return many->commit_many({{renewal, Sync::Durable}, {beside, Sync::Durable}}).front();
  };
  // The second one is prepared, and so as plain as can be.
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(committed(renew()));
    ASSERT_TRUE(committed(store->commit({step(Step::Kind::Remove, "new")}, Sync::Durable)));
  }
  Held row(*this, other, "ROLLBACK");
  std::thread renewing([&] {
    const auto answer = renew();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_FALSE(committed(answer)) << "it was revived";
  });
  EXPECT_TRUE(wait_for("row", 1));
  EXPECT_EQ(state(), TimerState::Running) << "too slow to show anything";
  EXPECT_TRUE(wait_until([&] { return state() == TimerState::Fired; }));
  row.end();
  renewing.join();
  EXPECT_EQ(state(), TimerState::Fired);
}

TEST_F(PostgresPlainRenewal, IsJudgedWhenItHasTheRow) { wait_for_row("alive"); }

// The one that it checks.
TEST_F(PostgresPlainRenewal, IsJudgedWhenItHasTheOtherRowToo) { wait_for_row("own"); }

// With something to write along, and with something that only the general way can do.
TEST_F(PostgresPlainRenewal, ThatIsNotShortIsJudgedAfterTheLastRow) {
  wait_for_row("own", {step(Step::Kind::Set, "work", "w")});
}
TEST_F(PostgresPlainRenewal, OfTheGeneralWayIsJudgedAfterTheLastRow) {
  wait_for_row("own", {step(Step::Kind::Check, "zz")});
}

// Whoever inserts waits for who has inserted the same and not ended yet.
TEST_F(PostgresPlainRenewal, ThatInsertsIsJudgedAfterTheInsertion) {
  wait_for_insertion({set("new", "n", 0)});
}
TEST_F(PostgresPlainRenewal, ThatMayInsertIsJudgedAfterTheInsertion) {
  wait_for_insertion({step(Step::Kind::Set, "new", "n")});
}
TEST_F(PostgresPlainRenewal, OfTheGeneralWayIsJudgedAfterTheInsertion) {
  wait_for_insertion({set("new", "n", 0), step(Step::Kind::Check, "zz")});
}
TEST_F(PostgresPlainRenewal, IsJudgedAfterTheInsertionOfAnotherThatTravelsWithIt) {
  wait_for_insertion({}, {set("new", "n", 0)});
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
  EXPECT_EQ(sql("SELECT version FROM meta"), "6\n");
}

// Where nothing is there no row brings the time along, also if the store's own records were asked
// for, which are there as a rule.
TEST_F(PostgresPlain, AReadingOfWhatIsNotThereTellsTheTime) {
  const auto store = open();
  warm_up(*store);
  const auto there = store->read({"meta/store", "k", "none"});
  ASSERT_TRUE(there) << there.error().message;
  for (const std::vector<std::string>& keys :
       {std::vector<std::string>{"meta/none", "none"}, std::vector<std::string>{"none"}}) {
    const auto reading = store->read(keys);
    ASSERT_TRUE(reading) << reading.error().message;
    EXPECT_EQ(reading->entries.front().version, 0U);
    EXPECT_EQ(reading->entries.size(), keys.size());
    EXPECT_GE(reading->store_time, there->store_time);
    EXPECT_TRUE(reading->store_wall);
  }
  EXPECT_GT(there->entries[0].version, 0U);
  EXPECT_GT(there->entries[1].version, 0U);
  EXPECT_EQ(there->entries[2].version, 0U);
}

// Random commits three times: plainly; the general way, which one more step makes them take; and
// beside another one, in one statement.
TEST_F(PostgresPlain, MeansTheSameAsTheGeneralWay) {
  const auto store = open();
  auto* const many = dynamic_cast<store::PostgresStore*>(store.get());
  ASSERT_NE(many, nullptr);
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
    for (const std::string space : {"p/", "q/", "m/"}) {
      std::mt19937 same = dice;
      auto steps = make(space, same);
      if (space == "q/") steps.push_back(step(Step::Kind::Check, "zz"));
      const std::vector<Step> beside = {step(Step::Kind::Append, "beside/", "x")};
      const auto answer = space == "m/" ? many->commit_many({{steps, sync}, {beside, sync}}).front()
                                        : store->commit(steps, sync);
      ASSERT_TRUE(answer) << answer.error().message;
      const auto* conflict = std::get_if<store::Conflict>(&*answer);
      answers.push_back(conflict == nullptr ? -1 : static_cast<int>(conflict->step));
    }
    ASSERT_EQ(answers[0], answers[1]) << round;
    ASSERT_EQ(answers[0], answers[2]) << round;
    if (answers[0] >= 0) ++conflicts;
    os::pause_for(Millis(2));  // what fires in a millisecond has fired in both
    for (const std::string name : {"a", "b", "c", "d", "e"}) {
      const auto all = store->read({cat("p/", name), cat("q/", name), cat("m/", name)})->entries;
      for (const store::Entry& entry : all) {
        ASSERT_EQ(entry.value, all[0].value) << round << entry.key;
        ASSERT_EQ(entry.timer.state, all[0].timer.state) << round << entry.key;
        ASSERT_EQ(entry.timer.ttl, all[0].timer.ttl) << round << entry.key;
        ASSERT_EQ(entry.present(), all[0].present()) << round << entry.key;
        last[entry.key] = entry.version;
      }
    }
  }
  EXPECT_GT(conflicts, 100);
  EXPECT_LT(conflicts, 1400);
  const auto logged = [&](const std::string& prefix) { return store->appended(prefix).value(); };
  EXPECT_EQ(logged("logp/") > 0, logged("logq/") > 0);
  EXPECT_EQ(logged("logp/") > 0, logged("logm/") > 0);
  // Both in one transaction: otherwise nothing of the third way was tried.
  EXPECT_NE(sql("SELECT count(*) > 50 FROM record a, record b WHERE a.xid = b.xid"
                " AND a.key >= 'logm/' AND a.key < 'logm0'"
                " AND b.key >= 'beside/' AND b.key < 'beside0'"),
            "f\n");
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
