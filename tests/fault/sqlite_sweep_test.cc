// The sqlite: store under the sweep.
// EVIDENCE-OF: G1 G2 G3 G11
#include <sqlite3.h>

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

// The log is about to be copied back into the file, with syncs of its own.
class AcquiringAtACheckpoint : public Acquiring {
 public:
  explicit AcquiringAtACheckpoint(std::uintmax_t frames) : Acquiring(1), frames_(frames) {}
  void set_up(World& world) override {
    Acquiring::set_up(world);
    constexpr std::uintmax_t kFrame = 2048 + 24;
    const std::string log = world.stint().database() + "-wal";
    EXPECT_EQ(world.stint()({"acquire", "other", "--ttl", "1h"}).exit_code, 0);
    // One commit of a grant is two frames or more.
    while (std::filesystem::file_size(log) < frames_ * kFrame) {
      ASSERT_EQ(world.stint()({"renew", "other", "--token", "1"}).exit_code, 0);
    }
  }

 private:
  std::uintmax_t frames_;
};

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
  AcquiringAtACheckpoint scenario(78);
  SqliteWorld world;
  sweep_with(world, scenario, "acquire, with a checkpoint");
}

TEST(SqliteSweep, AcquireThatCutsTheLogOff) {
  SKIP_WITHOUT_STRACE();
  AcquiringAtACheckpoint scenario(98);
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
