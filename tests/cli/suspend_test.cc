// A machine that slept under a run: before the deadline it changes nothing; past it the work is
// stopped first, and only then does anything else happen.
//
// The sleep is played (tests/cli/preload/asleep.cc), so that a ttl of a minute passes in no time,
// and nothing here hangs on how fast this machine is.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/support/asleep.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// Of a ttl of 60s: deadline after 49.4 s, killed after 59.4 s.
constexpr seconds kBeforeTheDeadline{40};
constexpr seconds kPastTheDeadline{55};
constexpr minutes kPastTheTtl{10};

class Suspend : public ::testing::Test {
 protected:
  Command command(std::vector<std::string> words) const {
    return machine_.here(stint_.command(std::move(words)), ASLEEP);
  }
  Finished stint(std::vector<std::string> words) const { return run(command(std::move(words))); }
  std::string lease(const std::string& field) const {
    return json_field(stint({"show", "r", "--json"}).out, field);
  }
  int events(const std::string& kind) const {
    return count_lines(stint({"events", "--json"}).out, cat("\"kind\":\"", kind, '"'));
  }
  std::string file(const char* name) const { return stint_.dir().file(name); }

  // Work that takes no notice of SIGTERM, with a grandchild in a session of its own.
  std::string stubborn() const {
    return cat("trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >", file("grandchild"),
               "; while :; do sleep 1; done' & echo $$ >", file("child"),
               "; while :; do sleep 1; done");
  }
  bool work_started() const { return pid("child") > 0 && pid("grandchild") > 0; }
  bool work_alive() const { return alive(pid("child")) || alive(pid("grandchild")); }
  pid_t pid(const char* name) const {
    return static_cast<pid_t>(parse_digits(trim(read_text(file(name)))).value_or(0));
  }

  const Stint stint_;
  Machine machine_{stint_.dir().file("asleep")};
};

TEST_F(Suspend, IsPlayedAsTheKernelShowsIt) {
  const char* script =
      "import time, sys\n"
      "def now(): return [time.clock_gettime(c) for c in"
      " (time.CLOCK_BOOTTIME, time.CLOCK_REALTIME, time.CLOCK_MONOTONIC)]\n"
      "a = now(); print(flush=True); sys.stdin.readline()\n"
      "while now()[0] - a[0] < 600: time.sleep(0.001)\n"
      "b = now(); print(*[int((y - x) // 600) for x, y in zip(a, b)])";
  Child clocks(machine_.here({.argv = {"python3", "-c", script}}, ASLEEP));
  ASSERT_TRUE(wait_until([&] { return !clocks.out().empty(); })) << clocks.err();
  machine_.suspend(minutes(10));
  ASSERT_TRUE(clocks.wait(milliseconds(10'000)));
  EXPECT_EQ(trim(clocks.out()), "1 1 0");
}

// EVIDENCE-OF: G6
TEST_F(Suspend, ThatEndsBeforeTheDeadlineChangesNothing) {
  const std::string stop = file("stop");
  Child holder(command({"run", "r", "--ttl", "60s", "--", "sh", "-c",
                        cat("while [ ! -e ", stop, " ]; do sleep 0.02; done; exit 7")}));
  ASSERT_TRUE(wait_until([&] { return lease("held") == "true"; })) << holder.err();
  for (int i = 0; i < 3; ++i) {
    machine_.suspend(kBeforeTheDeadline);
    // Overdue for a heartbeat: it is renewed at the wake-up, not a third of the ttl later.
    ASSERT_TRUE(wait_until([&] {
      return parse_digits(lease("remaining_ms")).value_or(0) > 50'000;
    })) << holder.err();
    ASSERT_TRUE(holder.running()) << holder.err();
  }
  EXPECT_EQ(stint({"acquire", "r"}).exit_code, 11);
  write_text(stop, "x");
  const auto exit = holder.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 7) << holder.err();
  EXPECT_EQ(lease("token"), "1");
  EXPECT_EQ(events("run_stopped"), 0);
}

// A machine that sleeps shows no progress, and is not wedged.
TEST_F(Suspend, ThatEndsBeforeTheDeadlineIsNoWantOfProgress) {
  const std::string stop = file("stop");
  Child holder(command({"run", "r", "--ttl", "60s", "--progress-timeout", "20s", "--", "sh", "-c",
                        cat("while [ ! -e ", stop, " ]; do sleep 0.02; done")}));
  ASSERT_TRUE(wait_until([&] { return lease("held") == "true"; })) << holder.err();
  machine_.suspend(kBeforeTheDeadline);
  ASSERT_TRUE(wait_until([&] { return parse_digits(lease("remaining_ms")).value_or(0) > 50'000; }))
      << holder.err();
  write_text(stop, "x");
  const auto exit = holder.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << holder.err();
}

// Nobody else can have it yet, but the promise to the work is over.
TEST_F(Suspend, PastTheDeadlineStopsTheWorkAlthoughTheLeaseCouldStillBeRenewed) {
  Child holder(command({"run", "r", "--ttl", "60s", "--", "sleep", "600"}));
  ASSERT_TRUE(wait_until([&] { return lease("held") == "true"; })) << holder.err();
  machine_.suspend(kPastTheDeadline);
  const auto exit = holder.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << holder.err();
  EXPECT_NE(holder.err().find("before the deadline"), std::string::npos) << holder.err();
  EXPECT_EQ(events("run_stopped"), 1);
  EXPECT_EQ(stint({"acquire", "r"}).out, "2\n") << "seen dead, so it was given back";
}

// EVIDENCE-OF: G6 G7
TEST_F(Suspend, PastTheTtlEndsTheWholeTreeFirstAndExits75) {
  const std::string told = file("told");
  Child holder(command({"run", "r", "--ttl", "60s", "--on-lost",
                        cat("for p in $(cat ", file("child"), ") $(cat ", file("grandchild"),
                            "); do kill -0 $p && echo alive; done >", told, "; echo told >>", told),
                        "--", "sh", "-c", stubborn()}));
  ASSERT_TRUE(wait_until([&] { return work_started(); })) << holder.err();
  Child next(command({"run", "r", "--on-held", "wait", "--", "sh", "-c", "echo $STINT_TOKEN"}));
  ASSERT_TRUE(wait_until([&] { return next.err().find("waiting") != std::string::npos; }));
  machine_.suspend(kPastTheTtl);
  const MonoTime woken = now();
  EXPECT_TRUE(wait_until([&] { return !work_alive(); }));
  // The promise itself: nothing of it is alive a second after the wake-up.
  EXPECT_LT(now() - woken, seconds(1));
  const auto exit = holder.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << holder.err();
  EXPECT_EQ(read_text(told), "told\n") << "told while the work was alive";
  const auto followed = next.wait(milliseconds(10'000));
  ASSERT_TRUE(followed);
  EXPECT_EQ(followed->code, 0) << next.err();
  EXPECT_EQ(next.out(), "2\n");
}

TEST_F(Suspend, PastTheTtlIsFoundOutAlsoWhenAnotherWasGrantedMeanwhile) {
  Child holder(command({"run", "r", "--ttl", "60s", "--", "sh", "-c", stubborn()}));
  ASSERT_TRUE(wait_until([&] { return work_started(); })) << holder.err();
  // Frozen as the machine would have it, so that the other is first for certain.
  std::vector<pid_t> all = descendants(holder.pid());
  all.push_back(holder.pid());
  for (const pid_t one : all) ::kill(one, SIGSTOP);
  machine_.suspend(kPastTheTtl);
  EXPECT_EQ(stint({"acquire", "r", "--ttl", "1h"}).out, "2\n");
  for (const pid_t one : all) ::kill(one, SIGCONT);
  const auto exit = holder.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << holder.err();
  EXPECT_FALSE(work_alive());
  EXPECT_EQ(lease("token"), "2");
  EXPECT_EQ(lease("held"), "true") << "what the other holds is not ours to give back";
}

TEST_F(Suspend, PastTheTtlWithRestartAcquiresAnewWithANewTokenAndANewChild) {
  const std::string log = file("log");
  Child holder(command(
      {"run", "r", "--ttl", "60s", "--restart", "--", "sh", "-c",
       cat("[ ! -e ", file("child"), " ] || ! kill -0 $(cat ", file("child"), ") || echo two >>",
           log, "; echo $STINT_TOKEN >>", log, "; [ $STINT_TOKEN = 1 ] || exit 9; echo $$ >",
           file("child"), "; trap '' TERM; while :; do sleep 1; done")}));
  ASSERT_TRUE(wait_until([&] { return pid("child") > 0; })) << holder.err();
  machine_.suspend(kPastTheTtl);
  const auto exit = holder.wait(milliseconds(20'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 9) << holder.err();
  EXPECT_EQ(read_text(log), "1\n2\n") << "a new token, a new child, never two at once";
  EXPECT_EQ(lease("held"), "false");
}

TEST_F(Suspend, PastTheDeadlineWithRestartGoesOnAtOnce) {
  const std::string log = file("log");
  Child holder(command(
      {"run", "r", "--ttl", "60s", "--restart", "--", "sh", "-c",
       cat("echo $STINT_TOKEN >>", log, "; [ $STINT_TOKEN != 1 ] || exec sleep 600; exit 9")}));
  ASSERT_TRUE(wait_until([&] { return read_text(log) == "1\n"; })) << holder.err();
  machine_.suspend(kPastTheDeadline);
  // Not after its own old lease has run out, which takes 5 s at least and a whole ttl at most.
  const auto exit = holder.wait(milliseconds(20'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 9) << holder.err();
  EXPECT_EQ(read_text(log), "1\n2\n");
}

}  // namespace
}  // namespace stint::test
