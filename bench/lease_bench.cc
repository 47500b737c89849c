// The embedded store against the least that could be safe: a raw synced SQLite transaction.
#include <sqlite3.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "app/opened.h"
#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "os/clock.h"
#include "os/random.h"
#include "service/records.h"
#include "store/sqlite/sqlite_store.h"
#include "tests/support/process.h"

namespace stint::bench {
namespace {

constexpr int kRounds = 5;

class Raw {
 public:
  explicit Raw(const std::string& path) {
    CHECK(sqlite3_open(path.c_str(), &db_) == SQLITE_OK, "open");
    exec(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
        "CREATE TABLE t(k TEXT PRIMARY KEY, v TEXT) WITHOUT ROWID");
    CHECK(sqlite3_prepare_v2(db_,
                             "INSERT INTO t VALUES(?,?) ON CONFLICT(k) DO UPDATE SET v=excluded.v",
                             -1, &upsert_, nullptr) == SQLITE_OK,
          "prepare");
  }
  ~Raw() {
    sqlite3_finalize(upsert_);
    sqlite3_close(db_);
  }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  void transaction(int n) {
    const std::string value = cat("a value of the size of a small record, number ", n);
    sqlite3_bind_text(upsert_, 1, "key", -1, SQLITE_STATIC);
    sqlite3_bind_text(upsert_, 2, value.c_str(), -1, SQLITE_TRANSIENT);
    CHECK(sqlite3_step(upsert_) == SQLITE_DONE, "step");
    sqlite3_reset(upsert_);
  }

 private:
  void exec(const char* sql) {
    CHECK(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK, sql);
  }
  sqlite3* db_ = nullptr;
  sqlite3_stmt* upsert_ = nullptr;
};

struct World {
  explicit World(std::string kind) : kind_of_store(std::move(kind)) {}
  std::string kind_of_store;  // "sqlite", "log"
  test::TempDir dir;
  os::SystemClock clock;
  os::SystemRandom random;
  std::unique_ptr<app::Opened> opened = open();

  std::unique_ptr<app::Opened> open() {
    auto url = app::parse_store_url(cat(kind_of_store, ":", dir.file("bench.db")));
    CHECK(url, "url");
    auto made =
        app::Opened::open({.url = *url, .state_directory = dir.file("state")}, clock, random);
    CHECK(made, "the store cannot be opened");
    return std::move(*made);
  }
  api::Leases& leases() { return opened->leases(); }
};

api::Grip acquire(World& world, const std::string& name) {
  const auto resource = ResourceName::parse(name).value();
  const auto owner = Owner::parse("bench").value();
  const Claim claim = Claim::make(world.random);
  auto answer = world.leases().acquire({.resource = resource,
                                        .owner = owner,
                                        .claim = claim,
                                        .terms = {.ttl = Millis(600'000)},
                                        .note = {},
                                        .retake = std::nullopt});
  CHECK(answer && std::holds_alternative<api::Granted>(*answer), "not granted");
  const auto& granted = std::get<api::Granted>(*answer);
  return {resource, granted.lease.token, claim, owner, granted.hint};
}

void pairs(World& world, const std::string& name, int count) {
  for (int i = 0; i < count; ++i) {
    const api::Grip grip = acquire(world, name);
    CHECK(world.leases().release(grip, false), "not released");
  }
}

double threaded_rate(World& world, int threads, int each) {
  std::vector<std::thread> all;
  const double took = seconds_of([&] {
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&world, t, each] { pairs(world, cat("thread-", t), each); });
    }
    for (std::thread& thread : all) thread.join();
  });
  return threads * each / took;
}

bool pair_lines() {
  World world("sqlite");
  Raw raw(world.dir.file("raw.db"));
  Comparison single{"acquire+release, one thread, grant synced",
                    "pairs/s",
                    "raw synced SQLite txn/s",
                    {},
                    {},
                    Goal::AtLeast,
                    0.6};
  Comparison many{"acquire+release, 64 threads in one process",
                  "pairs/s",
                  "one thread, pairs/s",
                  {},
                  {},
                  Goal::AtLeast,
                  10};
  constexpr int kCount = 1500;
  pairs(world, "warm", 200);
  for (int round = 0; round < kRounds; ++round) {
    const double raw_rate = kCount / seconds_of([&] {
                              for (int i = 0; i < kCount; ++i) raw.transaction(i);
                            });
    const double one = kCount / seconds_of([&] { pairs(world, "single", kCount); });
    single.our_values.push_back(one);
    single.their_values.push_back(raw_rate);
    many.our_values.push_back(threaded_rate(world, 64, 500));
    many.their_values.push_back(one);
  }
  const bool ok = print(single);
  return print(many) && ok;
}

// Fills a store with `count` leases that are held, many in a transaction, as its own records are.
void fill(World& world, int count) {
  std::vector<std::thread> all;
  for (int t = 0; t < 64; ++t) {
    all.emplace_back([&world, t, count] {
      for (int i = t; i < count; i += 64) acquire(world, cat("fill/", i / 100, "/", i % 100));
    });
  }
  for (std::thread& thread : all) thread.join();
}

struct Costs {
  double acquire = 0;
  double renew = 0;
  double list = 0;
};

Costs costs(World& world, const std::string& name) {
  constexpr int kCount = 400;
  std::vector<api::Grip> grips;
  Costs out;
  out.acquire = 1e6 / kCount * seconds_of([&] {
                  for (int i = 0; i < kCount; ++i)
                    grips.push_back(acquire(world, cat(name, "/", i)));
                });
  out.renew = 1e6 / kCount * seconds_of([&] {
                for (const api::Grip& grip : grips)
                  CHECK(world.leases().renew(grip, Millis(600'000)), "renew");
              });
  constexpr int kLists = 20;
  out.list = 1e6 / kLists * seconds_of([&] {
               for (int i = 0; i < kLists; ++i) {
                 auto listed =
                     world.leases().list({.prefix = "fill/3/", .after = "", .limit = 1000});
                 CHECK(listed && listed->size() == 100, "not a hundred");
               }
             });
  return out;
}

// The store is closed, and opened again with all that is in it, until it gives a grant.
bool restart_line(World& world, int large) {
  Measure line{cat("restart of ", world.kind_of_store, ": with ", large, " leases"), "s", {}, 3};
  for (int round = 0; round < kRounds; ++round) {
    world.opened.reset();
    line.values.push_back(seconds_of([&] {
      world.opened = world.open();
      acquire(world, cat("restart/", round));
    }));
  }
  return print(line);
}

bool scale_lines(int large, const std::string& kind) {
  World small_world(kind);
  World large_world(kind);
  fill(small_world, 1000);
  fill(large_world, large);
  const std::string at = cat(" on ", kind, ": at ", large, " leases");
  Comparison acquired{"acquire" + at, "us", "at 1000, us", {}, {}, Goal::AtMost, 1.3};
  Comparison renewed{"renew" + at, "us", "at 1000, us", {}, {}, Goal::AtMost, 1.3};
  Comparison listed{"ls PREFIX of 100" + at, "us", "at 1000, us", {}, {}, Goal::AtMost, 1.3};
  costs(small_world, "warm");
  costs(large_world, "warm");
  for (int round = 0; round < kRounds; ++round) {
    const Costs few = costs(small_world, cat("round", round));
    const Costs lots = costs(large_world, cat("round", round));
    acquired.their_values.push_back(few.acquire);
    acquired.our_values.push_back(lots.acquire);
    renewed.their_values.push_back(few.renew);
    renewed.our_values.push_back(lots.renew);
    listed.their_values.push_back(few.list);
    listed.our_values.push_back(lots.list);
  }
  const bool one = print(acquired);
  const bool two = print(renewed);
  const bool three = print(listed);
  return restart_line(large_world, large) && one && two && three;
}

// posix_spawn and wait, nothing else: what a shell would do.
bool run_line(const std::string& stint) {
  const test::TempDir dir;
  return print(commands_in_turn(
      {.line = {"stint run r -- true", "ms", "flock -n f true, ms", {}, {}, Goal::AtMost, 2.5},
       .ours = {stint, "run", "r", "--", "true"},
       .theirs = {"/usr/bin/flock", "-n", dir.file("lock"), "true"},
       .state = dir.path(),
       .runs = 200,
       .rounds = kRounds}));
}

}  // namespace
}  // namespace stint::bench

// lease_bench STINT [LARGE [run|pairs|scale|scale-log]]: the table on stdout; exit 1 if a goal is
// missed.
int main(int argc, char** argv) {
  using namespace stint::bench;
  if (argc < 2) return 2;
  const int large = argc > 2 ? std::atoi(argv[2]) : 1'000'000;
  const std::string only = argc > 3 ? argv[3] : "";
  print_header();
  bool ok = true;
  if (only.empty() || only == "run") ok = run_line(argv[1]) && ok;
  if (only.empty() || only == "pairs") ok = pair_lines() && ok;
  if (only.empty() || only == "scale") ok = scale_lines(large, "sqlite") && ok;
  if (only.empty() || only == "scale-log") ok = scale_lines(large, "log") && ok;
  return ok ? 0 : 1;
}
