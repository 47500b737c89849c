// Schedules: deciding after a long outage, an idle scheduler with many jobs, many slots at once.
#include <spawn.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "app/opened.h"
#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "os/clock.h"
#include "os/exec_words.h"
#include "os/pause.h"
#include "os/random.h"
#include "service/slot_service.h"
#include "store/memory/memory_store.h"
#include "store/sqlite/sqlite_store.h"
#include "tests/support/process.h"

namespace stint::bench {
namespace {

constexpr int kRounds = 3;
constexpr int kJobs = 10'000;
constexpr int kAtOnce = 200;

// The machine's clock, some time on.
class Shifted final : public Clock {
 public:
  MonoTime mono() const override { return clock_.mono(); }
  WallTime wall() const override { return clock_.wall() + by; }
  Millis by{0};

 private:
  os::SystemClock clock_;
};

std::vector<core::JobRule> rules() {
  constexpr const char* kSchedules[] = {"* * * * *", "*/15 * * * *", "7 * * * *", "30 2 * * *"};
  std::vector<core::JobRule> out;
  for (int i = 0; i < kJobs; ++i) {
    core::JobRule rule;
    rule.name = cat("job-", i);
    rule.schedule = kSchedules[i % 4];
    rule.expression = core::parse_cron(rule.schedule).value();
    rule.digest = core::schedule_digest(rule.schedule, "UTC");
    out.push_back(std::move(rule));
  }
  return out;
}

double decide_all(store::Store& store, Shifted& clock, const std::vector<core::JobRule>& jobs) {
  service::Ledger ledger(store, clock, 1'000'000);
  service::SlotService slots(store, ledger, clock);
  std::vector<api::DecideAsk> asks;
  for (const core::JobRule& rule : jobs) asks.push_back({.rule = &rule});
  for (const auto& made : slots.decide(asks, "bench")) CHECK(made, "a job is made known");
  clock.by += std::chrono::hours(24) * 365;
  return seconds_of([&] {
    for (const auto& decided : slots.decide(asks, "bench")) {
      CHECK(decided && decided->mine && decided->dropped.size() == 1, "decided");
    }
  });
}

bool catch_up() {
  const std::vector<core::JobRule> jobs = rules();
  Measure memory{"10000 jobs after a year's outage decided, in memory", "s", {}, 1};
  Measure sqlite{"10000 jobs after a year's outage decided, sqlite", "s", {}, 1};
  for (int round = 0; round < kRounds; ++round) {
    Shifted clock;
    store::MemoryStore in_memory(clock);
    memory.values.push_back(decide_all(in_memory, clock, jobs));
    const test::TempDir dir;
    auto on_disk = store::SqliteStore::open({.path = dir.file("s.db"),
                                             .clock_name = os::clock_name(),
                                             .busy = Millis(5000),
                                             .may_create = true,
                                             .accept_copy = false},
                                            clock);
    CHECK(on_disk, "the store opens");
    sqlite.values.push_back(decide_all(**on_disk, clock, jobs));
  }
  const bool ok = print(memory);
  return print(sqlite) && ok;
}

double processor_seconds(pid_t pid) {
  return std::atof(test::read_text(cat("/proc/", pid, "/schedstat")).c_str()) / 1e9;
}

bool idle(const std::string& program) {
  const test::TempDir dir;
  std::string text = cat("store = 'sqlite:", dir.file("s.db"), "'\n");
  for (int i = 0; i < kJobs; ++i) {
    text += cat("[job.j", i, "]\nschedule='0 0 1 1 *'\ncommand='true'\n");
  }
  test::write_text(dir.file("stint.toml"), text);
  test::Child child(
      {.argv = {program, "cron", dir.file("stint.toml")}, .env = {{"XDG_STATE_HOME", dir.path()}}});
  auto opened =
      test::wait_until([&] { return !test::read_text(dir.file("s.db")).empty(); }, Millis(60'000));
  CHECK(opened, "the scheduler starts");
  os::pause_for(std::chrono::seconds(10));  // all of them made known
  Measure measure{"a scheduler with 10000 jobs and nothing due: of a core", "%", {}, 1};
  for (int round = 0; round < kRounds; ++round) {
    const double before = processor_seconds(child.pid());
    constexpr auto kWatched = std::chrono::seconds(20);
    os::pause_for(kWatched);
    const double used = processor_seconds(child.pid()) - before;
    measure.values.push_back(100 * used / std::chrono::duration<double>(kWatched).count());
  }
  CHECK(child.running(), "it still runs");
  return print(measure);
}

double bare_loop() {
  return seconds_of([] {
    std::vector<pid_t> pids(kAtOnce);
    for (pid_t& pid : pids) {
      std::vector<std::string> words = {"/bin/true"};
      CHECK(::posix_spawn(&pid, "/bin/true", nullptr, nullptr, os::exec_words(words).data(),
                          ::environ) == 0,
            "spawn");
    }
    for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  });
}

struct Burst {
  double first = 0;  // seconds after the slot's instant
  double last = 0;
};

Burst burst(const std::string& program) {
  const test::TempDir dir;
  const os::SystemClock clock;
  const auto at = core::whole_seconds(clock.wall()) + std::chrono::seconds(6);
  const std::chrono::hh_mm_ss time(at - std::chrono::floor<std::chrono::days>(at));
  const std::string schedule =
      cat(time.seconds().count(), " ", time.minutes().count(), " ", time.hours().count(), " * * *");
  const std::string url = cat("sqlite:", dir.file("s.db"));
  std::string text = cat("store = '", url, "'\n");
  for (int i = 0; i < kAtOnce; ++i) {
    text += cat("[job.j", i, "]\nschedule='", schedule, "'\ncommand=['/bin/true']\n");
  }
  test::write_text(dir.file("stint.toml"), text);
  test::Child child({.argv = {program, "cron", "-q", dir.file("stint.toml")},
                     .env = {{"XDG_STATE_HOME", dir.path()}}});
  os::pause_for(core::wall_of(at) - clock.wall() + std::chrono::seconds(1));
  os::SystemRandom random;
  auto opened = app::Opened::open(
      {.url = app::parse_store_url(url).value(), .state_directory = dir.path()}, clock, random);
  CHECK(opened, "the store opens");
  Burst out{.first = 1e9, .last = 0};
  for (int i = 0; i < kAtOnce; ++i) {
    core::EndedSlot ended;
    const bool done = test::wait_until(
        [&] {
          const auto history = (*opened)->slots().history(cat("j", i), 1);
          if (!history || history->ended.empty()) return false;
          ended = history->ended.front();
          return true;
        },
        Millis(60'000));
    CHECK(done && ended.state == core::SlotState::Ran, "it ran");
    const auto after = [&](WallTime t) {
      return std::chrono::duration<double>(t - core::wall_of(at)).count();
    };
    out.first = std::min(out.first, after(*ended.started_at));
    out.last = std::max(out.last, after(*ended.ended_at));
  }
  return out;
}

bool many_at_once(const std::string& program) {
  Comparison all{"200 slots on one second, all ended",
                 "s",
                 "200 x posix_spawn /bin/true",
                 {},
                 {},
                 Goal::AtMost,
                 2};
  Measure first{"the first of 200 slots started after", "ms", {}, 100};
  for (int round = 0; round < kRounds; ++round) {
    const Burst ours = burst(program);
    all.add(ours.last, bare_loop());
    first.values.push_back(ours.first * 1000);
  }
  const bool ok = print(all);
  return print(first) && ok;
}

}  // namespace
}  // namespace stint::bench

// schedule_bench STINT: the table on stdout; exit 1 if a goal is missed.
int main(int argc, char** argv) {
  using namespace stint::bench;
  if (argc != 2) return 2;
  print_header();
  bool ok = catch_up();
  ok = many_at_once(argv[1]) && ok;
  return idle(argv[1]) && ok ? 0 : 1;
}
