// The sqlite: store under the sweep.
// EVIDENCE-OF: G1 G2 G3 G11
#include <sqlite3.h>

#include <functional>

#include "app/opened.h"
#include "os/clock.h"
#include "store/seam.h"
#include "tests/fault/lease_sweep.h"

namespace stint::test {
namespace {

class SqliteWorld final : public World {
 public:
  std::string store() const override { return cat("sqlite:", stint_.database()); }

  // The words of SQLite itself on the file.
  std::string damage() const override {
    if (!std::filesystem::exists(stint_.database())) return {};
    sqlite3* db = nullptr;
    std::string said = "cannot be opened";
    if (sqlite3_open(stint_.database().c_str(), &db) == SQLITE_OK) {
      const auto listen = [](void* out, int, char** cells, char**) {
        *static_cast<std::string*>(out) = cells[0];
        return 0;
      };
      sqlite3_exec(db, "PRAGMA integrity_check", listen, &said, nullptr);
    }
    sqlite3_close(db);
    return said == "ok" ? "" : said;
  }

 private:
  void copy(const std::string& from, const std::string& to) override {
    World::copy(from, to);
    // Nobody has the copy open: its index is made anew from the log.
    std::filesystem::remove(to + "/stint/stint.db-shm");
  }
};

int number(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  int out = 0;
  sqlite3_open(path.c_str(), &db);
  const auto listen = [](void* found, int, char** cells, char**) {
    *static_cast<int*>(found) = std::atoi(cells[0]);
    return 0;
  };
  sqlite3_exec(db, sql, listen, &out, nullptr);
  sqlite3_close(db);
  return out;
}

// Commits of another process have brought the store to where the next one has more to do.
class AcquiringAfter : public Acquiring {
 public:
  using Enough = std::function<bool(const std::string& database)>;
  explicit AcquiringAfter(Enough enough) : Acquiring(1), enough_(std::move(enough)) {}

  void set_up(World& world) override {
    Acquiring::set_up(world);
    const os::SystemClock clock;
    const auto url = app::parse_store_url(world.store());
    ASSERT_TRUE(url);
    auto store = app::open_store({.url = *url, .state_directory = {}, .may_create = false}, clock);
    ASSERT_TRUE(store);
    store::Step filler;
    filler.kind = store::Step::Kind::Set;
    filler.key = "filler";
    while (!enough_(world.stint().database())) {
      ASSERT_TRUE((*store)->commit({filler}, store::Sync::Relaxed));
    }
  }

 private:
  Enough enough_;
};

// The log is about to be copied back into the file, with syncs of its own. A commit of a grant is
// a frame or more.
AcquiringAfter acquiring_at_frame(std::uintmax_t frames) {
  return AcquiringAfter([frames](const std::string& database) {
    constexpr std::uintmax_t kFrame = 2048 + 24;
    return std::filesystem::file_size(database + "-wal") >= frames * kFrame;
  });
}

AcquiringAfter acquiring_at_a_fold() {
  return AcquiringAfter([](const std::string& database) {
    const char* rows = "SELECT count(*) FROM journal WHERE n > (SELECT folded FROM mark)";
    return number(database, rows) >= 64;
  });
}

TEST(SqliteSweep, AcquireThatWritesTheJournalIntoTheTable) {
  SKIP_WITHOUT_STRACE();
  AcquiringAfter scenario = acquiring_at_a_fold();
  SqliteWorld world;
  sweep_with(world, scenario, "acquire, with a fold");
}

TEST(SqliteSweep, TheFirstAcquireOfAll) {
  SKIP_WITHOUT_STRACE();
  Acquiring scenario(0);
  SqliteWorld world;
  sweep_with(world, scenario, "acquire, no store yet");
}

TEST(SqliteSweep, Acquire) {
  SKIP_WITHOUT_STRACE();
  Acquiring scenario(2);
  SqliteWorld world;
  sweep_with(world, scenario, "acquire");
}

TEST(SqliteSweep, AcquireThatCopiesTheLogBack) {
  SKIP_WITHOUT_STRACE();
  AcquiringAfter scenario = acquiring_at_frame(79);
  SqliteWorld world;
  sweep_with(world, scenario, "acquire, with a checkpoint");
}

TEST(SqliteSweep, AcquireThatCutsTheLogOff) {
  SKIP_WITHOUT_STRACE();
  AcquiringAfter scenario = acquiring_at_frame(99);
  SqliteWorld world;
  sweep_with(world, scenario, "acquire, with a log cut off");
}

TEST(SqliteSweep, Renew) {
  SKIP_WITHOUT_STRACE();
  Renewing scenario;
  SqliteWorld world;
  sweep_with(world, scenario, "renew");
}

TEST(SqliteSweep, Release) {
  SKIP_WITHOUT_STRACE();
  Releasing scenario;
  SqliteWorld world;
  sweep_with(world, scenario, "release");
}

}  // namespace
}  // namespace stint::test
