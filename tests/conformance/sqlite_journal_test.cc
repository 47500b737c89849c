// sqlite: only: what commits gather in the journal and what a fold writes into the table are one.
#include <sqlite3.h>

#include <map>
#include <random>

#include "base/text.h"
#include "store/append_key.h"
#include "store/sqlite/batch.h"
#include "store/sqlite/journal.h"
#include "tests/conformance/sqlite_fixture.h"

namespace stint::testing {
namespace {

using Truth = std::map<std::string, std::string>;

class SqliteJournal : public SqliteTest {
 protected:
  std::int64_t number(const char* sql) {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    sqlite3_stmt* query = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, sql, -1, &query, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    EXPECT_EQ(sqlite3_step(query), SQLITE_ROW);
    const std::int64_t out = sqlite3_column_int64(query, 0);
    sqlite3_finalize(query);
    sqlite3_close(db);
    return out;
  }
  std::int64_t folds() { return number("SELECT folded FROM mark"); }

  static Truth all(store::Store& store, bool backwards, std::size_t at_once) {
    Truth out;
    store::Store::ScanRange range{
        .prefix = "k", .after = {}, .limit = at_once, .backwards = backwards};
    while (true) {
      auto read = store.scan(range);
      EXPECT_TRUE(read);
      if (!read || read->entries.empty()) return out;
      std::string last = range.after;
      for (const store::Entry& entry : read->entries) {
        EXPECT_TRUE(last.empty() || (backwards ? entry.key < last : entry.key > last));
        last = entry.key;
        out[entry.key] = entry.value;
      }
      range.after = last;
    }
  }

  static void expect_same(store::Store& store, const Truth& truth) {
    for (const bool backwards : {false, true}) {
      EXPECT_EQ(all(store, backwards, 1000), truth);
      EXPECT_EQ(all(store, backwards, 3), truth);
    }
    for (int i = 0; i < 30; ++i) {
      const std::string key = cat("k", i);
      const auto found = truth.find(key);
      EXPECT_EQ(get(store, key).value, found == truth.end() ? "" : found->second);
    }
  }
};

// Two processes, each with a view of its own, and folds by both of them.
TEST_F(SqliteJournal, TwoWhoTakeTurnsSeeTheSameAcrossFolds) {
  std::mt19937 random(7);
  const auto pick = [&](int below) { return static_cast<int>(random() % unsigned(below)); };
  auto one = std::move(open().value());
  auto other = std::move(open().value());
  Truth truth;
  const std::int64_t before = folds();
  for (int round = 0; round < 600; ++round) {
    store::Store& writer = pick(2) == 0 ? *one : *other;
    const std::string key = cat("k", pick(30));
    if (pick(4) == 0) {
      Step gone;
      gone.kind = Step::Kind::Remove;
      gone.key = key;
      ASSERT_TRUE(writer.commit({gone}, store::Sync::Relaxed));
      truth.erase(key);
    } else {
      ASSERT_TRUE(writer.commit({set(key, cat(round))}, store::Sync::Relaxed));
      truth[key] = cat(round);
    }
    if (round % 20 == 0) {
      expect_same(*one, truth);
      expect_same(*other, truth);
    }
    if (round % 150 == 0) (pick(2) == 0 ? one : other) = std::move(open().value());
  }
  EXPECT_GT(folds(), before) << "the test never came to a fold";
  expect_same(*open().value(), truth);
}

TEST_F(SqliteJournal, VersionsAndAppendedNumbersGoOnAcrossFoldsAndProcesses) {
  std::uint64_t revision = 0;
  for (int i = 0; i < 300; ++i) {
    const auto store = std::move(open().value());
    Step append;
    append.kind = Step::Kind::Append;
    append.key = "log/";
    append.value = cat(i);
    const auto done = store->commit({append, set("k", "v")}, store::Sync::Durable);
    ASSERT_TRUE(done);
    const auto& committed = std::get<store::Committed>(*done);
    EXPECT_GT(committed.revision, revision);
    EXPECT_EQ(committed.versions[1], committed.revision);
    revision = committed.revision;
    EXPECT_EQ(store->revision().value(), revision);
    EXPECT_EQ(store->appended("log/").value(), static_cast<std::uint64_t>(i) + 1);
  }
  EXPECT_GT(folds(), 0);
  const auto store = std::move(open().value());
  const auto entries = store->scan({.prefix = "log/", .after = {}, .limit = 1000}).value().entries;
  ASSERT_EQ(entries.size(), 300U);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(entries[static_cast<std::size_t>(i)].value, cat(i));
}

// Every scan would step over them.
TEST_F(SqliteJournal, ManyRemovedRowsAreTakenOutOfTheTable) {
  const auto store = std::move(open().value());
  const auto change = [&](int from, Step::Kind kind) {
    std::vector<Step> steps;
    for (int i = from; i < from + 50; ++i) {
      steps.push_back(set(cat("k", i), "v"));
      steps.back().kind = kind;
    }
    ASSERT_TRUE(store->commit(steps, store::Sync::Relaxed));
  };
  for (int i = 0; i < 1000; i += 50) change(i, Step::Kind::Set);
  for (int i = 0; i < 1000; i += 50) change(i, Step::Kind::Remove);
  ASSERT_TRUE(put(*store, "j", "v"));
  // Far fewer rows of the journal than make a fold by themselves: 41 in all.
  EXPECT_GT(folds(), 20) << "after the first 500 of 1000 removals";
  EXPECT_EQ(all(*store, false, 1000), Truth());
}

// EVIDENCE-OF: G12
TEST_F(SqliteJournal, AFileThatWentBackUnderARunningProcessIsReadAnew) {
  const auto store = std::move(open().value());
  ASSERT_TRUE(put(*store, "k", "old"));
  sqlite3* saved = nullptr;
  sqlite3* live = nullptr;
  // One thread: without mutexes, which the copies there and back would take in either order.
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  ASSERT_EQ(sqlite3_open_v2(":memory:", &saved, flags, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &live, flags, nullptr), SQLITE_OK);
  const auto copy = [](sqlite3* to, sqlite3* from) {
    sqlite3_backup* backup = sqlite3_backup_init(to, "main", from, "main");
    ASSERT_NE(backup, nullptr);
    EXPECT_EQ(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    EXPECT_EQ(sqlite3_backup_finish(backup), SQLITE_OK);
  };
  copy(saved, live);
  ASSERT_TRUE(put(*store, "k", "new"));
  ASSERT_TRUE(put(*store, "j", "new"));
  copy(live, saved);
  // Another goes on from there, as far as this one had come.
  ASSERT_TRUE(put(*open().value(), "k", "of another way"));
  ASSERT_TRUE(put(*open().value(), "i", "of another way"));
  EXPECT_EQ(get(*store, "k").value, "of another way");
  EXPECT_EQ(get(*store, "j").version, 0U);
  EXPECT_EQ(get(*store, "i").value, "of another way");
  sqlite3_close(saved);
  sqlite3_close(live);
}

// Times of the old boot's clock must not be taken for the new one's.
TEST_F(SqliteJournal, IsInTheTableBeforeANewBootIsEntered) {
  {
    const auto store = std::move(open().value());
    clock_.advance(std::chrono::hours(1000));
    start(*store, "k", Millis(60'000));
    ASSERT_TRUE(put(*store, "plain", "v"));
  }
  clock_.advance(-std::chrono::hours(999));
  const auto store = std::move(open_on_boot("boot-2").value());
  EXPECT_EQ(get(*store, "plain").value, "v");
  EXPECT_EQ(get(*store, "k").timer.state, TimerState::Running);
  EXPECT_LE(get(*store, "k").timer.remaining, Millis(60'000));
  ASSERT_TRUE(put(*store, "plain", "w"));
  clock_.advance(std::chrono::seconds(61));
  EXPECT_EQ(get(*store, "k").timer.state, TimerState::Fired);
}

TEST_F(SqliteJournal, OfTheFirstSchemaIsCreatedOnTheWay) {
  { ASSERT_TRUE(put(*open().value(), "k", "v")); }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
  // What the first schema was: all in the table.
  ASSERT_EQ(sqlite3_exec(db,
                         "DROP TABLE journal; ALTER TABLE mark DROP COLUMN folded;"
                         "ALTER TABLE mark DROP COLUMN folded_mark;"
                         "INSERT INTO record(k, v, version) VALUES('old', 'v', 1);"
                         "UPDATE mark SET seq = 5; PRAGMA user_version=1",
                         nullptr, nullptr, nullptr),
            SQLITE_OK)
      << sqlite3_errmsg(db);
  sqlite3_close(db);
  const auto store = std::move(open().value());
  EXPECT_EQ(get(*store, "old").value, "v");
  EXPECT_EQ(store->revision().value(), 5U);
  ASSERT_TRUE(put(*store, "k", "w"));
  EXPECT_EQ(store->revision().value(), 6U);
  EXPECT_EQ(number("PRAGMA user_version"), 2);
}

TEST_F(SqliteJournal, ADamagedRowIsAnErrorAndNeverLeftOut) {
  { ASSERT_TRUE(put(*open().value(), "k", "v")); }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "UPDATE journal SET changes = x'0105'", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(db);
  const auto store = open();
  ASSERT_TRUE(store);
  expect_unavailable((*store)->read({"k"}), "damaged");
  expect_unavailable((*store)->scan(under("k")), "damaged");
  expect_unavailable(put(**store, "k", "w"), "damaged");
}

// A row that was read from the table while a commit wrote it is old when it comes to the view.
TEST_F(SqliteJournal, ARowReadBeforeACommitDoesNotHideIt) {
  const auto store = open();
  ASSERT_TRUE(store);
  const auto reader = store::Database::open(path_, Millis(1000)).value();
  const auto writer = store::Database::open(path_, Millis(1000)).value();
  store::View view;
  ASSERT_TRUE(reader->run("BEGIN"));
  const auto known = view.look(*reader, std::vector<std::string>{"k"});
  ASSERT_TRUE(known && !known->rows[0]);
  const store::Boots boots(1);
  bool wrote = false;
  ASSERT_TRUE(writer->run("BEGIN IMMEDIATE"));
  store::Batch batch(*writer, view, boots);
  ASSERT_TRUE(batch.begin(Nanos(1), WallTime{}));
  ASSERT_TRUE(batch.apply({set("k", "new")}, wrote));
  ASSERT_TRUE(batch.finish({.rows = 100, .bytes = 100'000, .removed = 100}));
  ASSERT_TRUE(writer->run("COMMIT"));
  batch.committed();
  ASSERT_TRUE(reader->run("COMMIT"));
  view.add(known->at, {{"k", store::Row{}}});
  const auto row = view.known("k", store::View::Part::Whole);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->value, "new");
  EXPECT_EQ(view.known("k", store::View::Part::Head)->version, row->version);
}

// What a scan found in the table is kept, and must be forgotten with the table that it is of.
TEST_F(SqliteJournal, AScanThatIsRepeatedSeesEveryCommitAndEveryFold) {
  const auto one = open();
  const auto other = open();
  ASSERT_TRUE(one && other);
  Truth truth;
  const std::int64_t before = folds();
  for (int i = 0; i < 400; ++i) {
    store::Store& writer = i % 7 == 0 ? **other : **one;
    const std::string key = cat("k", i % 11);
    if (i % 3 == 2) {
      ASSERT_TRUE(writer.commit({remove(key)}, store::Sync::Relaxed));
      truth.erase(key);
    } else {
      ASSERT_TRUE(writer.commit({set(key, cat(i))}, store::Sync::Relaxed));
      truth[key] = cat(i);
    }
    for (const bool backwards : {false, true}) {
      for (const std::size_t limit : {1, 4, 100}) {
        const auto read =
            (*one)->scan({.prefix = "k", .after = {}, .limit = limit, .backwards = backwards});
        ASSERT_TRUE(read);
        ASSERT_EQ(read->entries.size(), std::min(limit, truth.size()));
        auto first = truth.begin();
        auto last = truth.rbegin();
        for (const store::Entry& entry : read->entries) {
          const auto& [name, value] = backwards ? *last++ : *first++;
          ASSERT_EQ(entry.key, name) << i;
          ASSERT_EQ(entry.value, value) << i;
        }
      }
    }
  }
  EXPECT_GE(folds(), before + 2);
}

TEST(SqliteJournalRow, ComesBackAsItWasAndAnyCutOfItIsRefused) {
  store::Recent changes;
  changes["a"] = {.value = std::string("bytes\0and more", 14), .version = 7, .timer = std::nullopt};
  changes["b"] = {};
  changes["c"] = {.value = "",
                  .version = 1ULL << 60U,
                  .timer = store::StoredTimer{.boot = 3, .fires_at = Nanos(1), .ttl = Millis(90)}};
  const std::string bytes = store::encode_journal_row(
      0x7FFFFFFFFFFFFFFF, {.seq = 300, .last = Nanos(1'000'000'000'000)}, changes);
  const auto row = store::decode_journal_row(bytes);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->mark, 0x7FFFFFFFFFFFFFFFU);
  EXPECT_EQ(row->now.seq, 300U);
  ASSERT_EQ(row->changes.size(), 3U);
  EXPECT_EQ(row->changes.at("a").value, changes.at("a").value);
  EXPECT_EQ(row->changes.at("b").version, 0U);
  EXPECT_EQ(row->changes.at("c").timer->ttl, Millis(90));
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    EXPECT_FALSE(store::decode_journal_row(std::string_view(bytes).substr(0, cut))) << cut;
  }
  EXPECT_FALSE(store::decode_journal_row(bytes + "x"));
  EXPECT_FALSE(store::decode_journal_row("\x02"));
}

}  // namespace
}  // namespace stint::testing
