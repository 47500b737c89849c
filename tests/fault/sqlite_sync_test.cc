// A sync of the sqlite: store that fails while another connection of the same process lies idle.
// EVIDENCE-OF: G11
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "os/clock.h"
#include "os/host.h"
#include "store/sqlite/sqlite_store.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

// What the files of SQLite are told to do, from the moment on that somebody listens.
struct DiskTalk {
  std::mutex mutex;
  std::condition_variable goes_on;
  bool listening = false;
  bool fails = false;   // the next sync of a log
  bool stalls = false;  // a sync of a log waits until this is over
  std::atomic<bool> stalled = false;
  int opened = 0;  // files of a store, one a connection
  std::vector<std::string> writes;
};
DiskTalk& disk() {
  static DiskTalk talk;
  return talk;
}

sqlite3_vfs* plain() {
  static sqlite3_vfs* const found = sqlite3_vfs_find("unix");
  return found;
}

// SQLite has one table of calls for files with locks and one for those without: the logs.
struct Table {
  sqlite3_io_methods ours;
  const sqlite3_io_methods* theirs;
  const char* what;
};
Table& table_of(bool log) {
  static Table tables[2] = {{{}, nullptr, "store"}, {{}, nullptr, "log"}};
  return tables[log ? 1 : 0];
}
template <bool kLog>
int write_told(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
  {
    const std::lock_guard lock(disk().mutex);
    if (disk().listening) disk().writes.emplace_back(table_of(kLog).what);
  }
  return table_of(kLog).theirs->xWrite(file, bytes, count, at);
}
template <bool kLog>
int sync_told(sqlite3_file* file, int how) {
  if (kLog) {
    std::unique_lock lock(disk().mutex);
    disk().stalled = disk().stalls;
    disk().goes_on.wait(lock, [] { return !disk().stalls; });
    if (std::exchange(disk().fails, false)) return SQLITE_IOERR_FSYNC;
  }
  return table_of(kLog).theirs->xSync(file, how);
}
template <bool kLog>
void wrap(sqlite3_file* file) {
  Table& table = table_of(kLog);
  if (table.theirs == nullptr) {
    table.theirs = file->pMethods;
    table.ours = *file->pMethods;
    table.ours.xWrite = write_told<kLog>;
    table.ours.xSync = sync_told<kLog>;
  }
  if (file->pMethods == table.theirs) file->pMethods = &table.ours;
}

int open_told(sqlite3_vfs* /*vfs*/, const char* path, sqlite3_file* file, int flags, int* out) {
  const int opened = plain()->xOpen(plain(), path, file, flags, out);
  if (opened != SQLITE_OK) return opened;
  const std::lock_guard lock(disk().mutex);
  if ((flags & SQLITE_OPEN_WAL) != 0) wrap<true>(file);
  if ((flags & SQLITE_OPEN_MAIN_DB) != 0) {
    wrap<false>(file);
    ++disk().opened;
  }
  return opened;
}

// The store builds on the default at its first use: so it is set before the first test.
bool register_told() {
  static sqlite3_vfs told = *plain();
  told.zName = "told";
  told.pNext = nullptr;
  told.xOpen = open_told;
  return sqlite3_vfs_register(&told, 1) == SQLITE_OK;
}
const bool registered = register_told();

TEST(SqliteSync, AConnectionThatLayIdleCopiesTheLogBeforeItWritesAfterAnothersFailedSync) {
  ASSERT_TRUE(registered);
  const TempDir dir;
  const os::SystemClock clock;
  auto store =
      store::SqliteStore::open({.path = dir.file("s.db"), .clock_name = os::clock_name()}, clock);
  ASSERT_TRUE(store) << store.error().message;
  const auto put = [&](const std::string& value) {
    store::Step step;
    step.kind = store::Step::Kind::Set;
    step.key = "k";
    step.value = value;
    return (*store)->commit({step}, store::Sync::Durable);
  };
  const auto opened = [] {
    const std::lock_guard lock(disk().mutex);
    return disk().opened;
  };
  ASSERT_TRUE(put("1"));
  // While one connection is in its sync, a look makes a second one.
  const int before = opened();
  {
    const std::lock_guard lock(disk().mutex);
    disk().stalls = true;
  }
  std::jthread slow([&] { EXPECT_TRUE(put("2")); });
  ASSERT_TRUE(wait_until([] { return disk().stalled.load(); }));
  ASSERT_TRUE((*store)->scan({.prefix = "k", .after = ""}));
  ASSERT_EQ(opened(), before + 1);
  {
    const std::lock_guard lock(disk().mutex);
    disk().stalls = false;
    disk().goes_on.notify_all();
  }
  slow.join();
  {
    const std::lock_guard lock(disk().mutex);
    disk().fails = true;
  }
  const auto failed = put("3");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::UnknownOutcome);
  {
    const std::lock_guard lock(disk().mutex);
    disk().listening = true;
  }
  const int connections = opened();
  ASSERT_TRUE(put("4"));
  EXPECT_EQ(opened(), connections) << "it was the one that lay idle";
  const std::lock_guard lock(disk().mutex);
  ASSERT_FALSE(disk().writes.empty());
  EXPECT_EQ(disk().writes.front(), "store") << "the log was written to before it was copied";
  disk().listening = false;
}

}  // namespace
}  // namespace stint::test
