// stint cron and its family, as people run them.
#include <gtest/gtest.h>
#include <signal.h>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

constexpr Millis kPatience{60'000};

// The program with a stint.toml of its own.
class Cron : public ::testing::Test {
 protected:
  void jobs(const std::string& text) { write_text(file(), text); }
  std::string file() const { return stint_.dir().file("stint.toml"); }
  std::string path(const std::string& name) const { return stint_.dir().file(name); }
  Command cron(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"cron", file()};
    words.insert(words.end(), more.begin(), more.end());
    return stint_.command(words);
  }
  Finished with_file(std::vector<std::string> words) const {
    words.push_back("--file");
    words.push_back(file());
    return stint_(words);
  }
  std::string slots(const std::string& job) const {
    return stint_({"slots", job, "--json", "-n", "10000"}).out;
  }
  int count(const std::string& job, const std::string& state) const {
    const std::string text = slots(job);
    const std::string wanted = cat("\"state\":\"", state, "\"");
    int n = 0;
    for (auto at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) ++n;
    return n;
  }
  bool until(const std::function<bool()>& condition) { return wait_until(condition, kPatience); }
  static void end(Child& child) {
    child.signal(SIGTERM);
    const auto exit = child.wait(kPatience);
    ASSERT_TRUE(exit.has_value());
    EXPECT_EQ(exit->code, 0) << child.err();
  }

  Stint stint_;
};

// Interval 2 s, one run takes 7 s.
TEST_F(Cron, AnOvertakingRunIsSkippedAndTheNextIsOnTime) {
  jobs(cat("[job.j]\nschedule = '*/2 * * * * *'\ncommand = 'echo run >>", path("log"), "; [ -e ",
           path("slow"), " ] || { touch ", path("slow"), "; sleep 7; }'\n"));
  Child child(cron());
  ASSERT_TRUE(until([&] { return count("j", "ran") >= 3; })) << child.err();
  end(child);
  // At least once: a machine that stands still for seconds drops some of them as missed.
  EXPECT_GE(count("j", "skipped_overlap"), 1) << slots("j");
  EXPECT_EQ(count("j", "failed") + count("j", "lost") + count("j", "skipped_held"), 0)
      << slots("j");
  EXPECT_GE(stint_.events({"skipped_overlap"}), 1);
  EXPECT_EQ(count_lines(read_text(path("log"))), count("j", "ran"));
}

TEST_F(Cron, TheCommandKnowsItsSlot) {
  jobs(cat("[job.j]\nschedule = '* * * * * *'\ntz = 'Asia/Tokyo'\nenv = { WHO = 'me' }\ndir = '",
           stint_.dir().path(), "'\ncommand = 'env >got.new; mv got.new got'\n"));
  Child child(cron());
  ASSERT_TRUE(until([&] { return !read_text(path("got")).empty(); })) << child.err();
  end(child);
  const std::string got = read_text(path("got"));
  EXPECT_NE(got.find("\nSTINT_SLOT=20"), std::string::npos) << got;
  EXPECT_NE(got.find("\nSTINT_SLOT_KEY=j@20"), std::string::npos) << got;
  EXPECT_NE(got.find("\nSTINT_ATTEMPT=1\n"), std::string::npos) << got;
  EXPECT_NE(got.find("WHO=me\n"), std::string::npos) << got;
  EXPECT_NE(got.find("STINT_RESOURCE=j\n"), std::string::npos) << got;
  EXPECT_NE(got.find("STINT_TOKEN="), std::string::npos) << got;
  EXPECT_EQ(got.find("STINT_CRON_"), std::string::npos) << got;
  EXPECT_EQ(got.find("STINT_BACKFILL"), std::string::npos) << got;
}

// A command that is not there, fails, hangs, floods its output, forks away: the others go on.
TEST_F(Cron, ABadJobIsItsOwnTrouble) {
  jobs(
      cat("[job.missing]\nschedule='* * * * * *'\ncommand=['/nowhere/at/all']\n"
          "[job.fails]\nschedule='* * * * * *'\ncommand='exit 7'\n"
          "[job.hangs]\nschedule='* * * * * *'\ncommand='sleep 1000'\nprogress_timeout='2s'\n"
          "[job.floods]\nschedule='* * * * * *'\ncommand='head -c 3000000 /dev/zero'\n"
          "[job.forks]\nschedule='* * * * * *'\ncommand='setsid sleep 1000 & echo $! >",
          path("pid"), "'\n[job.good]\nschedule='* * * * * *'\ncommand='true'\n"));
  Child child(cron({"--drain", "1s"}));
  EXPECT_TRUE(until([&] { return count("missing", "failed") >= 1; })) << child.err();
  EXPECT_TRUE(until([&] { return count("fails", "failed") >= 1; })) << child.err();
  EXPECT_TRUE(until([&] { return count("hangs", "failed") >= 1; })) << child.err();
  EXPECT_TRUE(until([&] { return count("floods", "ran") >= 1; }));
  EXPECT_TRUE(until([&] { return count("forks", "ran") >= 1; }));
  EXPECT_TRUE(until([&] { return count("good", "ran") >= 3; }));
  EXPECT_NE(slots("missing").find("\"exit_code\":127"), std::string::npos);
  EXPECT_NE(slots("fails").find("\"exit_code\":7"), std::string::npos);
  EXPECT_NE(slots("hangs").find("no progress"), std::string::npos);
  end(child);
}

TEST_F(Cron, ADirectoryThatIsNotThereIsAFailedAttempt) {
  jobs("[job.j]\nschedule='0 0 1 1 *'\ncommand='true'\ndir='/no/such'\nretries=1\nbackoff='1s'\n");
  ASSERT_EQ(with_file({"cron", "trigger", "j"}).exit_code, 0);
  Child child(cron());
  EXPECT_TRUE(until([&] { return count("j", "failed") == 1; })) << child.err() << slots("j");
  end(child);
  EXPECT_NE(slots("j").find("\"attempt\":2"), std::string::npos) << slots("j");
  EXPECT_NE(slots("j").find("/no/such"), std::string::npos) << slots("j");
  EXPECT_EQ(stint_.events({"failed"}), 2);
}

// A runner that waits for the resource is one that has not started.
TEST_F(Cron, WhoIsEndingStartsNothingMore) {
  jobs(cat("[job.j]\nschedule='0 0 1 1 *'\nresource='r'\non_held='wait'\ncommand='touch ",
           path("ran"), "'\n"));
  ASSERT_EQ(with_file({"cron", "trigger", "j"}).exit_code, 0);
  Child holder(stint_.command({"run", "r", "--", "sleep", "1000"}));
  ASSERT_TRUE(until([&] { return stint_.held("r"); }));
  Child child(cron({"--drain", "1000s"}));
  ASSERT_TRUE(until([&] { return child.err().find("waiting") != std::string::npos; }));
  end(child);
  EXPECT_EQ(count("j", "due"), 1) << slots("j");
  holder.signal(SIGTERM);
  ASSERT_TRUE(holder.wait(kPatience).has_value());
  // The next scheduler has it.
  const Finished next = stint_({"cron", file(), "--once"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
}

TEST_F(Cron, AnotherFilesScheduleIsNotTakenOverByAnOrder) {
  jobs(cat("[job.j]\nschedule='0 0 1 1 *'\ncommand='echo run >>", path("log"), "'\n"));
  ASSERT_EQ(stint_({"cron", file(), "--once"}).exit_code, 0);
  const std::string other = path("other.toml");
  write_text(other, "[job.j]\nschedule='5 5 5 5 *'\ncommand='true'\n");
  const Finished slot =
      stint_({"cron", "run", "j", "--slot", "2026-05-05T05:05:00Z", "--file", other});
  EXPECT_EQ(slot.exit_code, 2) << slot.err;
  EXPECT_NE(slot.err.find("config_differs"), std::string::npos) << slot.err;
  for (const char* verb : {"pause", "resume", "trigger"}) {
    const Finished done = stint_({"cron", verb, "j", "--file", other});
    EXPECT_EQ(done.exit_code, 0) << verb << done.err;
    EXPECT_NE(done.err.find("config_differs"), std::string::npos) << verb << done.err;
  }
  const Finished once = stint_({"cron", file(), "--once"});
  EXPECT_EQ(once.exit_code, 0) << once.err;
  EXPECT_EQ(read_text(path("log")), "run\n") << once.err;
}

TEST_F(Cron, ASlotThatIsNotDueYetIsRefused) {
  jobs("[job.j]\nschedule='0 0 1 1 *'\ncommand='true'\n");
  const Finished done = with_file({"cron", "run", "j", "--slot", "2999-01-01T00:00:00Z"});
  EXPECT_EQ(done.exit_code, 2) << done.err;
  EXPECT_NE(done.err.find("not due yet"), std::string::npos) << done.err;
}

TEST_F(Cron, AFileWithQueuesAloneIsTended) {
  jobs("[queue.mail]\n");
  const Finished done = stint_({"cron", file(), "--once"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.err.find("looking after the queues alone"), std::string::npos) << done.err;
}

// Nobody claims and nobody works: the janitor inside settles what ran out.
TEST_F(Cron, SettlesTheClaimsOfItsQueuesThatRanOut) {
  jobs("[queue.mail]\n");
  ASSERT_EQ(stint_({"cron", file(), "--once"}).exit_code, 0);
  const auto put = [&] { return std::string(trim(stint_({"queue", "put", "mail", "x"}).out)); };
  const auto item = [&](const std::string& id, const std::string& field) {
    return json_field(stint_({"queue", "show", id, "--json"}).out, field);
  };
  const std::string begun = put();
  ASSERT_EQ(stint_({"queue", "claim", "mail", "--ttl", "1s", "--started"}).exit_code, 0);
  const std::string untouched = put();
  ASSERT_EQ(stint_({"queue", "claim", "mail", "--ttl", "1s"}).exit_code, 0);
  ASSERT_EQ(item(untouched, "state"), "claimed");
  Child child(cron());
  EXPECT_TRUE(until([&] { return item(begun, "state") == "parked"; })) << child.err();
  EXPECT_TRUE(until([&] { return item(untouched, "state") == "waiting"; })) << child.err();
  EXPECT_EQ(item(begun, "by"), "janitor");
  EXPECT_EQ(item(begun, "reason"), "expired");
  EXPECT_EQ(item(untouched, "attempt"), "1");
  EXPECT_EQ(stint_.events({"item_parked", begun}), 1);
  EXPECT_EQ(stint_.events({"item_requeued", untouched}), 1);
  end(child);
}

TEST_F(Cron, AWrongFileIsToldWithLineAndColumn) {
  struct Bad {
    std::string text;
    std::string says;
  };
  const std::vector<Bad> all = {
      {"", "there is no job in it"},
      {"[job.j]\nschedule='* * * * *'\ncommand='true'\n[job.j]\n", ":4:"},
      {"color = 'blue'\n[job.j]\nschedule='* * * * *'\ncommand='true'\n",
       ":1:1: unknown key 'color'"},
      {"[job.j]\nschedule='* * * * *'\ncommand='true'\nttll='3s'\n", ":4:1: job 'j': unknown key"},
      {"[job.j]\nschedule='* * * * *'\ntz='Mars/Base'\ncommand='true'\n",
       ":3:4: job 'j': tz: there is no time zone"},
      {"[job.j]\nschedule='* * 30 2 *'\ncommand='true'\n", ":2:10: job 'j': schedule: it never"},
      {"[job.j]\nschedule='61 * * * *'\ncommand='true'\n", "minutes: '61'"},
      {"[job.j]\nschedule='* * * * *'\n", ":1:1: job 'j': no command"},
      {"[job.j]\ncommand='true'\n", ":1:1: job 'j': no schedule"},
      {"[job.j]\nschedule='* * * * *'\ncommand=''\n", ":3:9: job 'j': command: must not be empty"},
      {"[job.j]\nschedule='* * * * *'\ncommand='true'\nmax_backfill=25\n", ":4:14: "},
      {"[job.j]\nschedule='* * * * *'\ncommand='true'\nttl='10ms'\n", ":4:5: job 'j': ttl: 1s is"},
      {"[job.j]\nschedule='* * * * *'\ncommand='true'\non_held='beg'\n", "none of skip"},
      {"[job.j]\nschedule='* * * * *'\ncommand='true'\nenv={A=1}\n", "table of strings"},
      {"[job.'a@b']\nschedule='* * * * *'\ncommand='true'\n", "without @"},
      {"job = 3\n", ":1:7: job must be tables"},
      {"concurrency = 0\n[job.j]\nschedule='* * * * *'\ncommand='true'\n", "concurrency must be"},
      {"[job.j\n", ":1:"},
      {"[job.j]\nschedule='* * * * *'\ncommand=[\"a\\u0000b\"]\n",
       "command: must not contain a NUL"},
      {"[job.j]\nschedule='* * * * *'\ncommand='true'\nseal=['nonsense']\n", "job 'j': seal: "},
  };
  for (const Bad& bad : all) {
    jobs(bad.text);
    for (const auto& words : {std::vector<std::string>{"cron", "check", file()},
                              std::vector<std::string>{"cron", file(), "--once"}}) {
      const Finished done = stint_(words);
      EXPECT_EQ(done.exit_code, 2) << bad.text << done.err;
      EXPECT_NE(done.err.find(bad.says), std::string::npos) << bad.text << done.err;
    }
  }
  const Finished none = stint_({"cron", "check", path("nothing.toml")});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("nothing.toml"), std::string::npos);
}

TEST_F(Cron, AJobThatIsWrongLeavesTheOthersAlone) {
  jobs(
      "[job.bad]\nschedule='* * * * *'\ntz='Mars/Base'\ncommand='true'\n"
      "[job.good]\nschedule='* * * * * *'\ncommand='true'\n");
  Child child(cron());
  EXPECT_TRUE(until([&] { return count("good", "ran") >= 2; })) << child.err();
  EXPECT_NE(child.err().find("Mars/Base"), std::string::npos);
  child.signal(SIGTERM);
  ASSERT_TRUE(child.wait(kPatience));
}

TEST_F(Cron, ManyOnOneSecondAllRun) {
  constexpr int kMany = 40;
  std::string text;
  for (int i = 0; i < kMany; ++i) {
    text += cat("[job.j", i, "]\nschedule='@every 5s'\nmax_backfill=0\ncommand='true'\n");
  }
  jobs(text);
  Child child(cron());
  const auto all_ran = [&] {
    for (int i = 0; i < kMany; ++i) {
      if (count(cat("j", i), "ran") == 0) return false;
    }
    return true;
  };
  EXPECT_TRUE(until(all_ran)) << child.err();
  child.signal(SIGTERM);
  ASSERT_TRUE(child.wait(kPatience));
  for (int i = 0; i < kMany; ++i) {
    EXPECT_EQ(count(cat("j", i), "failed") + count(cat("j", i), "lost"), 0) << slots(cat("j", i));
  }
}

TEST_F(Cron, OnceDoesWhatIsDueAndExits) {
  jobs(cat("[job.j]\nschedule='* * * * * *'\ncommand='echo run >>", path("log"), "'\n"));
  // The first call only makes the job known: a new job never back-fills.
  EXPECT_EQ(run(cron({"--once"}), kPatience).exit_code, 0);
  ASSERT_TRUE(until(
      [&] { return run(cron({"--once"}), kPatience).exit_code == 0 && count("j", "ran") >= 1; }));
  EXPECT_GE(count_lines(read_text(path("log"))), 1);
}

TEST_F(Cron, ReloadTakesTheNewFileAndKeepsTheOldIfItIsWrong) {
  jobs("[job.a]\nschedule='* * * * * *'\ncommand='true'\n");
  Child child(cron());
  ASSERT_TRUE(until([&] { return count("a", "ran") >= 1; })) << child.err();
  jobs("rubbish");
  child.signal(SIGHUP);
  ASSERT_TRUE(until([&] { return child.err().find("stay as they were") != std::string::npos; }));
  jobs("[job.b]\nschedule='* * * * * *'\ncommand='true'\n");
  child.signal(SIGHUP);
  EXPECT_TRUE(until([&] { return count("b", "ran") >= 1; })) << child.err();
  end(child);
}

TEST_F(Cron, SigtermLetsJobsEndAndThenStopsThemAsLost) {
  jobs(
      "[job.slow]\nschedule='* * * * * *'\ncommand='sleep 2'\n"
      "[job.stuck]\nschedule='* * * * * *'\nttl='6s'\ncommand='sleep 1000'\n");
  Child child(cron({"--drain", "4s"}));
  ASSERT_TRUE(until([&] { return count("stuck", "running") == 1; })) << slots("stuck");
  ASSERT_TRUE(until([&] { return count("slow", "running") == 1; }));
  end(child);
  EXPECT_EQ(count("slow", "running") + count("slow", "lost"), 0) << slots("slow");
  EXPECT_EQ(count("stuck", "lost"), 1) << slots("stuck");
  EXPECT_EQ(count("stuck", "running"), 0);
}

TEST_F(Cron, ASecondSigtermEndsThemNow) {
  jobs("[job.stuck]\nschedule='* * * * * *'\ncommand='trap : TERM; while :; do sleep 1; done'\n");
  Child child(cron({"--drain", "10m"}));
  ASSERT_TRUE(until([&] { return count("stuck", "running") == 1; }));
  child.signal(SIGTERM);
  ASSERT_TRUE(until([&] { return child.err().find("have 10m to end") != std::string::npos; }));
  child.signal(SIGTERM);
  ASSERT_TRUE(child.wait(kPatience));
  EXPECT_EQ(count("stuck", "lost"), 1) << slots("stuck");
}

TEST_F(Cron, KilledWithItsRunTheSlotIsLostAndTheNextRuns) {
  jobs("[job.j]\nschedule='* * * * * *'\nttl='2s'\ncommand='[ -e on ] || sleep 1000'\ndir='" +
       stint_.dir().path() + "'\n");
  Child first(cron());
  ASSERT_TRUE(until([&] { return count("j", "running") == 1; })) << first.err();
  for (const pid_t pid : descendants(first.pid())) ::kill(pid, SIGKILL);
  first.signal(SIGKILL);
  write_text(path("on"), "");
  Child second(cron());
  EXPECT_TRUE(until([&] { return count("j", "lost") == 1 && count("j", "ran") >= 1; }))
      << slots("j");
  end(second);
}

TEST_F(Cron, PausedItRecordsAndRunsNothing) {
  jobs("[job.j]\nschedule='* * * * * *'\ncommand='true'\n");
  Child child(cron());
  ASSERT_TRUE(until([&] { return count("j", "ran") >= 1; })) << child.err();
  ASSERT_EQ(with_file({"cron", "pause", "j"}).exit_code, 0);
  ASSERT_TRUE(until([&] { return count("j", "skipped_paused") >= 2; })) << slots("j");
  const int ran = count("j", "ran");
  const Finished triggered = with_file({"cron", "trigger", "j"});
  EXPECT_EQ(triggered.exit_code, 0) << triggered.err;
  EXPECT_TRUE(triggered.out.starts_with("j@20")) << triggered.out;
  EXPECT_TRUE(until([&] { return count("j", "ran") == ran + 1; })) << slots("j");
  ASSERT_EQ(with_file({"cron", "resume", "j"}).exit_code, 0);
  EXPECT_TRUE(until([&] { return count("j", "ran") >= ran + 2; })) << slots("j");
  EXPECT_EQ(with_file({"cron", "pause", "nobody"}).exit_code, 2);
  end(child);
}

TEST_F(Cron, RunIsForThoseWhoKeepTheirOwnScheduler) {
  jobs(cat("[job.j]\nschedule='0 6 * * *'\ncommand='echo $STINT_SLOT_KEY >>", path("log"), "'\n"));
  const auto slot = [&](const std::string& at) {
    return with_file({"cron", "run", "j", "--slot", at});
  };
  EXPECT_EQ(slot("2026-11-10T06:00:00Z").exit_code, 0);
  EXPECT_EQ(read_text(path("log")), "j@2026-11-10T06:00:00Z\n");
  const Finished again = slot("j@2026-11-10T06:00:00Z");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_NE(again.err.find("has ended already: ran"), std::string::npos) << again.err;
  EXPECT_EQ(slot("2026-11-11T06:00:00").exit_code, 0);  // as the job's own clock shows it
  EXPECT_EQ(count_lines(read_text(path("log"))), 2);
  EXPECT_EQ(slot("tomorrow").exit_code, 2);
  EXPECT_EQ(slot("2100-01-01T06:00:00Z").exit_code, 2);
  EXPECT_EQ(with_file({"cron", "run", "j"}).exit_code, 2);
}

TEST_F(Cron, ExplainForetellsAnOutage) {
  jobs("[job.j]\nschedule='*/15 * * * *'\nmax_backfill=2\nstart_deadline='5h'\ncommand='true'\n");
  const Finished done =
      with_file({"explain", "j", "--down", "2026-11-15T21:07:00Z..2026-11-16T07:12:00Z", "--json"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const auto times = [&](const std::string& state) {
    int n = 0;
    const std::string wanted = cat("\"state\":\"", state, "\"");
    for (auto at = done.out.find(wanted); at != std::string::npos;
         at = done.out.find(wanted, at + 1)) {
      ++n;
    }
    return n;
  };
  EXPECT_EQ(times("runs"), 2);
  EXPECT_EQ(times("skipped_late"), 20);
  EXPECT_EQ(times("skipped_stale"), 18);
  EXPECT_EQ(with_file({"explain", "j", "--down", "23:00..07:12"}).exit_code, 0);
  EXPECT_EQ(with_file({"explain", "j", "--down", "soon"}).exit_code, 2);
  EXPECT_EQ(with_file({"explain", "j"}).exit_code, 2);
}

TEST_F(Cron, SlotsOfAnUnknownJobAreNone) {
  EXPECT_EQ(stint_({"acquire", "x"}).exit_code, 0);  // there is a store
  const Finished done = stint_({"slots", "nobody", "--json"});
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_EQ(done.out, "[]\n");
}

TEST(Once, IsDoneOnceAndUnknownStaysUnknown) {
  const Stint stint;
  const std::string log = stint.dir().file("log");
  const auto once = [&](const std::string& key, const std::string& command,
                        std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"once", key};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", command});
    return stint(words);
  };
  EXPECT_EQ(once("k", "echo x >>" + log).exit_code, 0);
  EXPECT_EQ(once("k", "echo x >>" + log).exit_code, 0);
  EXPECT_EQ(count_lines(read_text(log)), 1);
  // A failure is a known end.
  EXPECT_EQ(once("f", "exit 4").exit_code, 4);
  EXPECT_EQ(once("f", "exit 0").exit_code, 0);
  EXPECT_EQ(once("f", "exit 9").exit_code, 0);
  // Killed together with its wrapper: nobody knows.
  {
    Child child(stint.command({"once", "u", "--ttl", "2s", "--", "sleep", "1000"}));
    ASSERT_TRUE(wait_until([&] { return stint.held("once/u"); }));
    ASSERT_TRUE(wait_until([&] { return descendants(child.pid()).size() >= 2; }));
    const Finished held = once("u", "true");
    EXPECT_EQ(held.exit_code, 11) << held.err;
    for (const pid_t pid : descendants(child.pid())) ::kill(pid, SIGKILL);
    child.signal(SIGKILL);
  }
  ASSERT_TRUE(wait_until([&] { return !stint.held("once/u"); }));
  const Finished unknown = once("u", "true");
  EXPECT_EQ(unknown.exit_code, 14) << unknown.err;
  EXPECT_NE(unknown.err.find("--again-if-unknown"), std::string::npos);
  EXPECT_EQ(once("u", "true", {"--again-if-unknown"}).exit_code, 0);
  EXPECT_EQ(once("u", "exit 9").exit_code, 0);
}

TEST(TuneCommand, ReadsTheRunsOfAResource) {
  const Stint stint;
  EXPECT_EQ(stint({"tune", "nothing"}).exit_code, 3);  // there is no store yet
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(stint({"run", "r", "--", "sleep", "0.05"}).exit_code, 0);
  }
  const Finished done =
      stint({"tune", "r", "--ttl", "1ms", "--json", "--svg", stint.dir().file("r.svg")});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(json_field(done.out, "count"), "6") << done.out;
  EXPECT_EQ(json_field(done.out, "lost"), "6") << done.out;
  EXPECT_EQ(json_field(done.out, "advised_lost"), "0") << done.out;
  EXPECT_TRUE(read_text(stint.dir().file("r.svg")).starts_with("<svg "));
  const Finished plain = stint({"tune", "r", "--ttl", "1ms"});
  EXPECT_NE(plain.out.find("! with a ttl of 1ms"), std::string::npos) << plain.out;
  EXPECT_EQ(stint({"tune", "nothing"}).exit_code, 3);
}

}  // namespace
}  // namespace stint::test
