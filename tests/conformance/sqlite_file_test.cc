// sqlite: only: a file that goes away, a lock that is kept, commits that share a transaction.
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "base/text.h"
#include "tests/conformance/sqlite_fixture.h"

namespace stint::testing {
namespace {

class SqliteFile : public SqliteTest {};

// EVIDENCE-OF: G12
TEST_F(SqliteFile, DeletedWhileInUseIsNoticedByReadScanAndCommit) {
  const auto store = std::move(open().value());
  ASSERT_TRUE(put(*store, "k", "v"));
  std::filesystem::remove(path_);
  expect_unavailable(store->read({"k"}), "moved or deleted");
  expect_unavailable(store->scan(under("k")), "moved or deleted");
  expect_unavailable(put(*store, "k", "w"), "moved or deleted");
}

TEST_F(SqliteFile, MovedAwayAndBackGoesOnWithoutWhatWasRefused) {
  const auto store = std::move(open().value());
  ASSERT_TRUE(put(*store, "k", "v"));
  std::filesystem::rename(path_, path_ + ".away");
  expect_unavailable(put(*store, "k", "w"), "moved or deleted");
  std::filesystem::rename(path_ + ".away", path_);
  EXPECT_EQ(get(*store, "k").value, "v");
  EXPECT_TRUE(put(*store, "k", "x"));
}

// EVIDENCE-OF: G12
TEST_F(SqliteFile, AnotherFileInItsPlaceIsNeverTakenForIt) {
  const auto store = std::move(open().value());
  ASSERT_TRUE(put(*store, "k", "v"));
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
  {
    const auto other = std::move(open().value());
    ASSERT_TRUE(put(*other, "k", "of another life"));
  }
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(store->read({"k"}));
    EXPECT_FALSE(put(*store, "k", "w"));
  }
  EXPECT_EQ(get(*open().value(), "k").value, "of another life");
}

// Scripts of acquire, renew and release: every process makes one commit and goes.
TEST_F(SqliteFile, TheLogStaysShortAlsoWhenEveryProcessCommitsOnce) {
  std::uintmax_t longest = 0;
  for (int i = 0; i < 400; ++i) {
    const auto store = std::move(open().value());
    ASSERT_TRUE(put(*store, "k", std::to_string(i)));
    longest = std::max(longest, std::filesystem::file_size(path_ + "-wal"));
  }
  EXPECT_LT(longest, 120U * (2048 + 24));
  EXPECT_EQ(get(*open().value(), "k").value, "399");
}

TEST_F(SqliteFile, ALogThatSomebodyReadsIsNotWaitedFor) {
  ASSERT_TRUE(open());
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &reader), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT * FROM record", nullptr, nullptr, nullptr),
            SQLITE_OK);
  const MonoTime start = os::SystemClock().mono();
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(put(*open().value(), "k", std::to_string(i)));
  EXPECT_LT(os::SystemClock().mono() - start, std::chrono::seconds(15)) << "busy: 20 s";
  sqlite3_close(reader);
  EXPECT_EQ(get(*open().value(), "k").value, "149");
}

// A child that takes the write lock, says so, and stops itself.
pid_t stopped_writer(const std::string& path) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    sqlite3* db = nullptr;
    sqlite3_open(path.c_str(), &db);
    sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ::close(ready[0]);
  ::close(ready[1]);
  return child;
}

TEST_F(SqliteFile, AStoppedProcessWithTheWriteLockIsNamed) {
  ASSERT_TRUE(open());
  const pid_t child = stopped_writer(path_);
  store::SqliteOptions impatient = options();
  impatient.busy = Millis(1300);
  {
    const auto store = std::move(open(impatient).value());
    EXPECT_TRUE(store->read({"k"})) << "readers do not wait for a writer";
    const auto answer = put(*store, "k", "v");
    expect_unavailable(answer, cat("process ", child));
    expect_unavailable(answer, "which is stopped");
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(put(*store, "k", "v")) << "and its lock goes with it";
  }
}

TEST_F(SqliteFile, CommitsOfSixtyFourThreadsAreEachWholeAndAnsweredRight) {
  const auto store = std::move(open().value());
  std::atomic<int> won = 0;
  std::atomic<int> lost = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const std::string own = cat("own/", t, "/", i);
        const auto sync = i % 2 == 0 ? store::Sync::Durable : store::Sync::Relaxed;
        // All want slot i: one of the 64 gets it, with its own record; the others write nothing.
        const auto answer = store->commit(
            {absent(set(cat("slot/", i), own)), set(own, "v"), append("log/", own)}, sync);
        ASSERT_TRUE(answer.has_value()) << answer.error().message;
        const bool mine = std::holds_alternative<store::Committed>(*answer);
        (mine ? won : lost) += 1;
        EXPECT_EQ(get(*store, own).present(), mine);
        EXPECT_EQ(get(*store, cat("slot/", i)).value == own, mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(won, 10);
  EXPECT_EQ(lost, 630);
  EXPECT_EQ(store->scan(under("log/")).value().entries.size(), 10U);
}

// Who waited for the write lock has looked at the clock before the one who had it.
// EVIDENCE-OF: G4
TEST_F(SqliteFile, TheTimeOfACommitIsNeverBeforeTheLastOnes) {
  const auto store = std::move(open().value());
  const auto time_of_a_commit = [&] {
    return std::get<store::Committed>(put(*store, "k", "v").value()).store_time.value();
  };
  const auto before = time_of_a_commit();
  clock_.advance(-Millis(5000));
  EXPECT_GE(time_of_a_commit(), before);
}

TEST_F(SqliteFile, OneThatIsTooLargeSpoilsNobodyElsesCommit) {
  const auto store = std::move(open().value());
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      const bool large = t % 4 == 0;
      const auto answer = put(*store, cat("k/", t), std::string(large ? 5000 : 10, 'v'));
      EXPECT_EQ(answer.has_value(), !large);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store->scan(under("k/")).value().entries.size(), 12U);
}

}  // namespace
}  // namespace stint::testing
