// Several commits in one statement of PostgreSQL: each by itself, none waiting for another's rows.
#include <atomic>
#include <thread>

#include "os/pause.h"
#include "tests/fault/postgres_plain_fixture.h"
#include "tests/support/tcp_proxy.h"

namespace stint::test::plain_commits {
namespace {

class PostgresMany : public PostgresPlain {
 protected:
  void SetUp() override {
    PostgresPlain::SetUp();
    if (IsSkipped()) return;
    store_ = open();
    many_ = dynamic_cast<store::PostgresStore*>(store_.get());
    ASSERT_NE(many_, nullptr);
    warm_up(*store_);
    meta_ = version(*store_, "meta/store");
  }
  Step meta(store::Version of) const { return seen(step(Step::Kind::Check, "meta/store"), of); }
  // A commit as a grant makes them: a record, a line, and a check of the store's own record.
  store::Proposal grant(const std::string& key, store::Version expected, store::Version of_meta) {
    return {{set(key, "v", expected), step(Step::Kind::Append, "log/", key), meta(of_meta)},
            Sync::Durable};
  }
  int conflict(const Result<store::CommitAnswer>& answer) {
    EXPECT_TRUE(answer) << answer.error().message;
    const auto* found = answer ? std::get_if<store::Conflict>(&*answer) : nullptr;
    return found == nullptr ? -1 : static_cast<int>(found->step);
  }

  std::unique_ptr<store::Store> store_;
  store::PostgresStore* many_ = nullptr;
  store::Version meta_ = 0;
};

TEST_F(PostgresMany, EachIsDoneOrNotByItself) {
  const auto answers = many_->commit_many(
      {grant("a", 0, meta_), grant("b", 17, meta_), grant("c", 0, meta_), grant("k", 0, meta_)});
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_TRUE(committed(answers[0]));
  EXPECT_EQ(conflict(answers[1]), 0) << "it was never there";
  EXPECT_TRUE(committed(answers[2]));
  EXPECT_EQ(conflict(answers[3]), 0) << "it is there already";
  EXPECT_EQ(sql("SELECT string_agg(convert_from(value, 'UTF8'), ' ' ORDER BY key) FROM record"
                " WHERE key >= 'log/' AND key < 'log0'"),
            "a c\n");
  const auto& first = std::get<Committed>(*answers[0]);
  EXPECT_EQ(first.versions[0], version(*store_, "a"));
  EXPECT_EQ(first.versions[2], meta_);
  EXPECT_GT(first.revision, 0U);
  // Now that all are there: one statement for all of them.
  const store::Version of_c = version(*store_, "c");
  const auto again =
      many_->commit_many({grant("a", version(*store_, "a"), meta_), grant("c", of_c, meta_)});
  EXPECT_TRUE(committed(again[0]) && committed(again[1]));
  EXPECT_EQ(sql("SELECT count(DISTINCT xid) FROM (SELECT xid FROM record WHERE key >= 'log/'"
                " AND key < 'log0' ORDER BY key DESC LIMIT 2) last"),
            "1\n");
}

// The floor that a token was counted from must still be the store's.   G1
TEST_F(PostgresMany, NoneIsDoneOnAnOldWordOfTheStore) {
  ASSERT_TRUE(committed(store_->commit({set("meta/store", "2", meta_)}, Sync::Durable)));
  const auto answers = many_->commit_many({grant("a", 0, meta_), grant("b", 0, meta_)});
  EXPECT_EQ(conflict(answers[0]), 2);
  EXPECT_EQ(conflict(answers[1]), 2);
  EXPECT_EQ(version(*store_, "a"), 0U);
}

// Of two that write one record one is done: they do not travel together.
TEST_F(PostgresMany, TwoThatWriteOneRecordAreNotBothDone) {
  const auto answers = many_->commit_many({grant("a", 0, meta_), grant("a", 0, meta_)});
  EXPECT_TRUE(committed(answers[0]) != committed(answers[1]));
  // One that is there: no insertion fails then, and both would hold.
  const store::Version of_k = version(*store_, "k");
  const auto again = many_->commit_many({grant("k", of_k, meta_), grant("k", of_k, meta_)});
  EXPECT_TRUE(committed(again[0]) != committed(again[1])) << "two were told that they have it";
  EXPECT_EQ(sql("SELECT count(*) FROM record WHERE key >= 'log/' AND key < 'log0'"), "2\n");
}

// A timer is judged by the store, in the commit.   G3
TEST_F(PostgresMany, ATimerThatHasFiredIsNotExtended) {
  Step make = set("short", "v", 0);
  make.timer = Step::TimerOp::Start;
  make.ttl = Millis(1);
  ASSERT_TRUE(committed(store_->commit({make}, Sync::Relaxed)));
  ASSERT_TRUE(wait_until(
      [&] { return store_->read({"short"})->entries.front().timer.state == TimerState::Fired; }));
  Step extend = seen(step(Step::Kind::Touch, "short"), version(*store_, "short"));
  extend.timer = Step::TimerOp::Extend;
  extend.ttl = Millis(60'000);
  extend.demand = TimerState::Running;
  const auto answers = many_->commit_many({{{extend}, Sync::Durable}, grant("a", 0, meta_)});
  EXPECT_EQ(conflict(answers[0]), 0);
  EXPECT_TRUE(committed(answers[1]));
  EXPECT_EQ(store_->read({"short"})->entries.front().timer.state, TimerState::Fired);
}

// A guarded transaction may hold a row for long: whoever does not want that row goes on.
TEST_F(PostgresMany, NobodyWaitsForAnothersRow) {
  Held row(*this, "SELECT 1 FROM record WHERE key = 'k' FOR SHARE");
  std::atomic<bool> all = false;
  std::thread caller([&] {
    const auto answers = many_->commit_many(
        {grant("k", version(*store_, "k"), meta_), grant("a", 0, meta_), grant("b", 0, meta_)});
    for (const auto& answer : answers) EXPECT_TRUE(committed(answer));
    all = true;
  });
  EXPECT_TRUE(wait_until([&] { return version(*store_, "a") > 0 && version(*store_, "b") > 0; }));
  EXPECT_FALSE(all);
  row.end();
  caller.join();
}

// The same for threads: those who would wait for the row are more than the lanes, and more than the
// connections.
TEST_F(PostgresMany, ThreadsWhoWaitForARowDoNotHoldUpTheOthers) {
  constexpr int kWaiting = 12;
  Held row(*this, "SELECT 1 FROM record WHERE key = 'k' FOR SHARE");
  const store::Version of_k = version(*store_, "k");
  std::atomic<int> done = 0;
  std::vector<std::thread> waiting;
  for (int i = 0; i < kWaiting; ++i) {
    waiting.emplace_back([&] {
      EXPECT_TRUE(store_->commit(grant("k", of_k, meta_).steps, Sync::Durable));
      ++done;
    });
  }
  EXPECT_TRUE(wait_for("row", static_cast<int>(store::postgres::Pool::kMostPatient)));
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&, i] {
      EXPECT_TRUE(committed(store_->commit(grant(cat("o", i), 0, meta_).steps, Sync::Durable)));
    });
  }
  for (std::thread& one : others) one.join();
  // One by one, too.
  EXPECT_TRUE(committed(store_->commit(grant("o9", 0, meta_).steps, Sync::Durable)));
  EXPECT_TRUE(store_->read({"k"}));
  EXPECT_EQ(done, 0);
  row.end();
  for (std::thread& one : waiting) one.join();
  EXPECT_EQ(done, kWaiting);
}

// They were one transaction: nobody who travelled knows, and nobody else is told so.
TEST_F(PostgresMany, AnAnswerThatIsLostIsUnknownToAllWhoTravelled) {
  TcpProxy proxy(server_->port());
  const auto store = open(Millis(30'000), proxy.port());
  auto* const many = dynamic_cast<store::PostgresStore*>(store.get());
  ASSERT_NE(many, nullptr);
  const auto both = [&](const std::string& one, const std::string& other) {
    // The third does not fit beside the first.
    return many->commit_many({grant(one, version(*store_, one), meta_),
                              grant(other, version(*store_, other), meta_),
                              grant(one, version(*store_, one), meta_)});
  };
  // So often that it is prepared.
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(committed(both("a", "b")[1]));
  const auto unknown = [](const Result<store::CommitAnswer>& answer) {
    return !answer && answer.error().code == Code::UnknownOutcome;
  };
  proxy.cut_one_reply_after(0);
  const auto done = both("x", "y");
  EXPECT_TRUE(unknown(done[0]) && unknown(done[1]));
  EXPECT_EQ(conflict(done[2]), 0) << "the first has made it";
  EXPECT_TRUE(version(*store_, "x") > 0 && version(*store_, "y") > 0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(committed(both("a", "b")[1]));
  proxy.cut_one_request_after(0);
  const auto lost = both("v", "w");
  EXPECT_TRUE(unknown(lost[0]) && unknown(lost[1]));
  EXPECT_TRUE(committed(lost[2])) << "the first never arrived";
  EXPECT_EQ(version(*store_, "w"), 0U);
}

// Those who travelled together get no second helping of time.
TEST_F(PostgresMany, ReadersOfAFrozenServerAreAnsweredInTheirTime) {
  constexpr Millis kTime{3'000};
  const auto store = open(kTime);
  ASSERT_NE(store, nullptr);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(store->read({"k"}));
  server_->freeze();
  const MonoTime before = now();
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&] {
      const auto reading = store->read({"k"});
      EXPECT_FALSE(reading);
      EXPECT_LT(now() - before, kTime + Millis(1'500));
    });
  }
  for (std::thread& one : readers) one.join();
  server_->thaw();
}

// Whoever waits for a record is woken also by a commit that travelled with others.
TEST_F(PostgresMany, WakesWhoWaits) {
  const auto other = open();
  auto watch = other->watch("b");
  ASSERT_TRUE(watch);
  const auto answers = many_->commit_many({grant("a", 0, meta_), grant("b", 0, meta_)});
  EXPECT_TRUE(committed(answers[0]) && committed(answers[1]));
  EXPECT_TRUE(os::wait_readable({(*watch)->fd()}, clock_.mono() + Millis(10'000)).front());
}

}  // namespace
}  // namespace stint::test::plain_commits
