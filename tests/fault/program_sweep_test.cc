// Commands that do more than one lease, under the sweep: run, once, cron run and the queue's verbs,
// on sqlite:, dir: and log:, killed, stopped and failed at their system calls. What was told
// outward must be true, work that may be done once is not done twice, and the store can be used
// afterwards. EVIDENCE-OF: G8 G9 G10 G11
//
// The slice of `make test` strikes a few points; `make crash` (STINT_SWEEP=full) strikes them all.
#include <functional>

#include "tests/fault/lease_sweep.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kProgramKills = 2;
constexpr std::size_t kProgramFailures = 1;

// One store in a folder that is made anew before every strike.
class ProgramWorld {
 public:
  explicit ProgramWorld(const std::string& kind) : kind_(kind) { begin_anew(); }

  void begin_anew() {
    fs::remove_all(folder());
    fs::remove_all(stint_.dir().file("state"));
    fs::create_directories(folder());
    stint_.use_store(cat(kind_, folder(), "/store", kind_ == "log:" ? "?segment_kb=1024" : ""));
  }
  std::string folder() const { return stint_.dir().file("world"); }
  std::string file(std::string_view name) const { return cat(folder(), "/", name); }
  // What the work leaves: a line each time that it is done.
  std::string work() const { return cat("echo done >> ", file("work")); }
  int times_done() const {
    return fs::exists(file("work")) ? count_lines(read_text(file("work"))) : 0;
  }
  const Stint& stint() const { return stint_; }

 private:
  const std::string kind_;
  Stint stint_;
};

struct ProgramPlay {
  std::string name;
  // It starts others, and strace counts in each of them: one of those may be stopped instead, and
  // nobody here would let it go on. Each of them stopped: tests/cli/watchers_test.cc.
  bool starts_others = false;
  std::function<void(ProgramWorld&)> set_up;
  std::function<std::vector<std::string>(const ProgramWorld&)> words;
  std::function<std::string(const Strike&, ProgramWorld&)> judge;
};

void sweep_program(const std::string& kind, const ProgramPlay& play) {
  ProgramWorld world(kind);
  play.set_up(world);
  SweepPlan plan{.command = world.stint().command(play.words(world)), .from = world.folder()};
  plan.deadline = Millis(60'000);
  plan.prepare = [&] {
    world.begin_anew();
    play.set_up(world);
    plan.command = world.stint().command(play.words(world));
  };
  plan.check = [&](const Strike& strike) { return play.judge(strike, world); };
  const auto strike_all = [&](std::vector<Blow> blows, std::size_t slice) {
    plan.syscalls = default_syscalls();
    plan.blows = std::move(blows);
    plan.most_points = full_sweep() ? 0 : slice;
    const auto report = sweep(plan);
    ASSERT_TRUE(report) << report.error().message;
    std::cout << play.name << ", " << kind << '\n' << report->text();
    for (const std::string& failure : report->failures) ADD_FAILURE() << failure;
  };
  if (!play.starts_others) strike_all({Blow::Stop}, kProgramKills);
  strike_all({Blow::Kill}, kProgramKills);
  strike_all({Blow::Eio, Blow::Enospc}, kProgramFailures);
}

bool said_not_done(const Strike& strike) {
  return strike.result.exit_code == 69 || strike.result.exit_code == 2;
}

class ProgramSweep : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { SKIP_WITHOUT_STRACE(); }
};

int items(const ProgramWorld& world, std::string_view state) {
  const auto listed = world.stint()({"queue", "ls", "q", "--json"});
  int count = 0;
  const std::string wanted = cat("\"state\":\"", state, "\"");
  for (auto at = listed.out.find(wanted); at != listed.out.npos;
       at = listed.out.find(wanted, at + 1)) {
    ++count;
  }
  return count;
}

TEST_P(ProgramSweep, QueuePut) {
  sweep_program(
      GetParam(),
      {.name = "queue put",
       .set_up =
           [](ProgramWorld& world) {
             EXPECT_EQ(world.stint()({"queue", "put", "other", "x", "--create"}).exit_code, 0);
           },
       .words = [](const ProgramWorld&) -> std::vector<std::string> {
         return {"queue", "put", "q", "hello", "--create"};
       },
       .judge = [](const Strike& strike, ProgramWorld& world) -> std::string {
         const int there = items(world, "waiting");
         if (there > 1) return unlike(strike, "one put made two items");
         if (strike.result.exit_code == 0 && there != 1) {
           return unlike(strike, "an acknowledged item is lost");
         }
         if (said_not_done(strike) && there != 0) {
           return unlike(strike, "it was put: that is 14");
         }
         const auto next = world.stint()({"queue", "put", "q", "next", "--create"});
         return next.exit_code == 0 ? "" : cat("no put afterwards: ", next.err);
       }});
}

TEST_P(ProgramSweep, QueueClaim) {
  sweep_program(
      GetParam(),
      {.name = "queue claim",
       .set_up =
           [](ProgramWorld& world) {
             EXPECT_EQ(world.stint()({"queue", "put", "q", "x", "--create"}).exit_code, 0);
           },
       .words = [](const ProgramWorld&) -> std::vector<std::string> {
         return {"queue", "claim", "q", "--ttl", "1h", "--json"};
       },
       .judge = [](const Strike& strike, ProgramWorld& world) -> std::string {
         const bool claimed = items(world, "claimed") == 1;
         if (items(world, "waiting") + (claimed ? 1 : 0) != 1) {
           return unlike(strike, "the item is lost");
         }
         if (strike.result.exit_code == 0 && !claimed) {
           return unlike(strike, "an acknowledged claim is lost");
         }
         if (said_not_done(strike) && claimed) {
           return unlike(strike, "it was claimed: that is 14");
         }
         const auto next = world.stint()({"queue", "claim", "q", "--ttl", "1h"});
         if (next.exit_code != (claimed ? 3 : 0)) {
           return cat("the next claim ended with ", next.exit_code.value_or(-1), next.err);
         }
         return {};
       }});
}

TEST_P(ProgramSweep, QueueComplete) {
  std::string id;
  sweep_program(
      GetParam(),
      {.name = "queue complete",
       .set_up =
           [&](ProgramWorld& world) {
             id = std::string(trim(world.stint()({"queue", "put", "q", "x", "--create"}).out));
             EXPECT_EQ(
                 world.stint()({"queue", "claim", "q", "--ttl", "1h", "--owner", "w"}).exit_code,
                 0);
           },
       .words = [&](const ProgramWorld&) -> std::vector<std::string> {
         return {"queue", "complete", id, "--epoch", "1", "--owner", "w"};
       },
       .judge = [&](const Strike& strike, ProgramWorld& world) -> std::string {
         const int completed = items(world, "done");
         if (strike.result.exit_code == 0 && completed != 1) {
           return unlike(strike, "an acknowledged completion is lost");
         }
         if (said_not_done(strike) && completed != 0) {
           return unlike(strike, "it was completed: that is 14");
         }
         const auto again =
             world.stint()({"queue", "complete", id, "--epoch", "1", "--owner", "w"});
         if (again.exit_code != 0 || items(world, "done") != 1) {
           return cat("asked for again: ", again.exit_code.value_or(-1), again.err);
         }
         return {};
       }});
}

TEST_P(ProgramSweep, Run) {
  sweep_program(GetParam(),
                {.name = "run",
                 .starts_others = true,
                 .set_up = [](ProgramWorld&) {},
                 .words = [](const ProgramWorld& world) -> std::vector<std::string> {
                   return {"run", "r", "--ttl", "2s", "--", "sh", "-c", world.work()};
                 },
                 .judge = [](const Strike& strike, ProgramWorld& world) -> std::string {
                   if (world.times_done() > 1) return unlike(strike, "the work was done twice");
                   if (strike.result.exit_code == 0 && world.times_done() != 1) {
                     return unlike(strike, "it says that the work was done");
                   }
                   // Whoever died: nobody waits longer than the ttl.
                   const auto next =
                       world.stint()({"run", "r", "--on-held", "wait=40s", "--held-exit", "11",
                                      "--", "sh", "-c", world.work()},
                                     Millis(60'000));
                   return next.exit_code == 0 ? "" : cat("no run afterwards: ", next.err);
                 }});
}

TEST_P(ProgramSweep, Once) {
  const auto words = [](const ProgramWorld& world) -> std::vector<std::string> {
    return {"once", "k", "--ttl", "2s", "--", "sh", "-c", world.work()};
  };
  sweep_program(GetParam(),
                {.name = "once",
                 .starts_others = true,
                 .set_up = [](ProgramWorld&) {},
                 .words = words,
                 .judge = [&](const Strike& strike, ProgramWorld& world) -> std::string {
                   if (strike.result.exit_code == 0 && world.times_done() != 1) {
                     return unlike(strike, "it says that the work was done");
                   }
                   const auto again = world.stint()(words(world));
                   if (world.times_done() > 1) return unlike(strike, "the work was done twice");
                   if (again.exit_code == 0 && world.times_done() != 1) return "done, it says";
                   return {};
                 }});
}

TEST_P(ProgramSweep, CronRun) {
  const auto words = [](const ProgramWorld& world) -> std::vector<std::string> {
    return {
        "cron", "run", "job", "--slot", "2026-11-15T06:45:00Z", "--file", world.file("jobs.toml")};
  };
  sweep_program(
      GetParam(),
      {.name = "cron run",
       .starts_others = true,
       .set_up =
           [](ProgramWorld& world) {
             write_text(
                 world.file("jobs.toml"),
                 cat("[job.job]\nschedule = \"45 6 * * *\"\nttl = \"2s\"\ncommand = [\"sh\", "
                     "\"-c\", \"",
                     world.work(), "\"]\n"));
           },
       .words = words,
       .judge = [&](const Strike& strike, ProgramWorld& world) -> std::string {
         if (strike.result.exit_code == 0 && world.times_done() != 1) {
           return unlike(strike, "it says that the slot ran");
         }
         static_cast<void>(world.stint()(words(world)));
         return world.times_done() > 1 ? unlike(strike, "an attempt was started twice") : "";
       }});
}

INSTANTIATE_TEST_SUITE_P(Stores, ProgramSweep, ::testing::Values("sqlite:", "dir:", "log:"),
                         [](const auto& param) {
                           const std::string kind = param.param;
                           return kind == "dir:" ? "Dir" : kind == "log:" ? "Log" : "Sqlite";
                         });

// Stopped on the way to the start of its work until another has had the lease: it starts nothing
// any more. EVIDENCE-OF: G7
TEST(RunHeldUpAtItsStart, StartsNothingAfterTheLeaseHasGone) {
  SKIP_WITHOUT_STRACE();
  const Stint stint;
  const std::string work = stint.dir().file("work");
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const auto writes = [&](const std::string& word) { return cat("echo ", word, " >>", work); };
  SweepPlan plan{.command = stint.command(
                     {"run", "r", "--ttl", "1s", "-q", "--", "sh", "-c", writes("first")}),
                 .from = ".deadline"};
  plan.syscalls = {"openat", "mkdir"};
  plan.blows = {Blow::Stop};
  plan.most_points = full_sweep() ? 0 : 3;
  plan.prepare = [&] { std::filesystem::remove(work); };
  plan.while_stopped = [&](const Strike&) {
    stint({"run", "r", "--on-held", "wait=15s", "-q", "--", "sh", "-c", writes("second")});
  };
  int struck = 0;
  plan.check = [&](const Strike& strike) -> std::string {
    // Of calls that other processes make as often, or that come before the grant, nothing follows.
    const bool between = strike.line.find(".deadline") != std::string::npos ||
                         strike.line.find("/cgroup") != std::string::npos;
    if (!strike.struck || !between) return "";
    ++struck;
    const std::string done = read_text(work);
    return done.ends_with("second\n") ? "" : cat("written: ", done);
  };
  const auto report = sweep(plan);
  ASSERT_TRUE(report) << report.error().message;
  std::cout << report->text();
  EXPECT_TRUE(report->failures.empty()) << report->failures.front();
  EXPECT_GT(struck, 0);
}

}  // namespace
}  // namespace stint::test
