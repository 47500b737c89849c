// Ends that are seen, and ends that are not, in a process that ignores SIGCHLD or reaps everything.
#include "os/ended.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <type_traits>

#include "base/text.h"
#include "os/begin.h"
#include "os/clock.h"
#include "os/errand.h"
#include "os/program.h"
#include "os/tee.h"

namespace stint::os {
namespace {

// There is no End that nobody saw.
static_assert(!std::is_default_constructible_v<End>);
static_assert(!std::is_default_constructible_v<ProgramEnd>);

// As a host that wants to hear nothing of its children.
class Ignored {
 public:
  Ignored() { ::signal(SIGCHLD, SIG_IGN); }
  ~Ignored() { ::signal(SIGCHLD, SIG_DFL); }
};

// As a host that waits for every child that there is, at once.
class Reaper {
 public:
  Reaper()
      : thread_([this] {
          while (!over_) {
            if (::waitpid(-1, nullptr, WNOHANG) <= 0) std::this_thread::yield();
          }
        }) {}
  ~Reaper() {
    over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

pid_t child_that_exits(int code) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(code);
  return child;
}

ProgramCall shell(const std::string& script) {
  return {.argv = {"sh", "-c", script},
          .environment = {"PATH=/usr/bin:/bin"},
          .limit = Millis(20'000),
          .apart = true};
}

void expect_codes() {
  for (const int code : {0, 1, 3, 255}) {
    const auto end = run_program(shell(cat("echo out; echo talk >&2; exit ", code)));
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->how, End::with_code(code));
    EXPECT_EQ(end->out, "out\n");
    EXPECT_EQ(end->talk, "talk\n");
  }
  const auto killed = run_program(shell("kill -9 $$"));
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(killed->how.signal(), SIGKILL);
  EXPECT_EQ(killed->how.code(), 128 + SIGKILL);
  EXPECT_EQ(run_program({.argv = {"/no/such"}, .environment = {}}).error().code, Code::Failed);
}

TEST(EndOfAChild, IsWhatTheKernelTold) {
  EXPECT_EQ(end_of(child_that_exits(3)), End::with_code(3));
  EXPECT_TRUE(end_of(child_that_exits(0))->good());
}

TEST(EndOfAChild, IsUnknownWhereNobodyIsToldOfIt) {
  const Ignored ignored;
  const pid_t child = child_that_exits(0);
  EXPECT_EQ(end_of(child), std::nullopt);
  const Sighting seen = look_at(child);
  EXPECT_FALSE(seen.runs);
  EXPECT_EQ(seen.end, std::nullopt);
  EXPECT_EQ(how_it_ended(seen.end), "nobody saw how");
}

// EVIDENCE-OF: G5
TEST(Program, EndsAsItEndedWhereSigchldIsIgnored) {
  const Ignored ignored;
  expect_codes();
}

// EVIDENCE-OF: G5
TEST(Program, EndsAsItEndedWhereAnotherWaitsForEveryChild) {
  const Reaper reaper;
  for (int i = 0; i < 20; ++i) expect_codes();
}

TEST(Program, IsKilledWithItsGroupAtTheLimit) {
  ProgramCall call = shell("sleep 60 & sleep 60");
  call.limit = Millis(50);
  EXPECT_EQ(run_program(call).error().code, Code::UnknownOutcome);
}

// Its parent is the helper, unless we are a program of our own.
TEST(Program, HasNoKnownEndWhereItsHelperWasKilled) {
  ASSERT_FALSE(children_are_ours());
  const auto end = run_program(shell("kill -9 $PPID; sleep 0.2; exit 0"));
  ASSERT_FALSE(end) << "told as " << how_it_ended(end->how);
  EXPECT_EQ(end.error().code, Code::UnknownOutcome);
}

TEST(Program, FindsSigchldAsAProgramExpectsIt) {
  const Ignored ignored;
  const auto end = run_program(shell("sh -c 'exit 5'; echo $?; grep SigIgn /proc/self/status"));
  ASSERT_TRUE(end);
  ASSERT_TRUE(end->out.starts_with("5\nSigIgn:\t")) << end->out;
  const std::string ignored_there = end->out.substr(end->out.find('\t') + 1);
  EXPECT_EQ(std::stoull(ignored_there, nullptr, 16) & (1U << (SIGCHLD - 1U)), 0U) << end->out;
}

TEST(Errand, IsNotDoneWhereNobodySawItsEnd) {
  EXPECT_TRUE(run_errand("exit 0", {"PATH=/usr/bin:/bin"}, Millis(20'000)));
  EXPECT_FALSE(run_errand("exit 3", {"PATH=/usr/bin:/bin"}, Millis(20'000)));
  const Ignored ignored;
  EXPECT_FALSE(run_errand("exit 0", {"PATH=/usr/bin:/bin"}, Millis(20'000)));
}

TEST(Tee, HasNoCodeWhereNobodySawItsEnd) {
  const TeeCall call{.argv = {"sh", "-c", "exit 3"}, .environment = {"PATH=/usr/bin:/bin"}};
  EXPECT_EQ(run_teed(call)->how, End::with_code(3));
  const Ignored ignored;
  const auto end = run_teed(call);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::UnknownOutcome);
}

// From now on this process has no system call that is younger than Linux 4.18 (all from 424 on).
bool lose_young_calls(unsigned error) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the call
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 424, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog filter{.len = 4, .filter = rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// As in a sandbox that knows them not.
TEST(Launchers, NeedNoYoungCall) {
  for (const bool ours : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (!lose_young_calls(ENOSYS)) ::_exit(77);
      if (ours) begin_program();
      expect_codes();
      const std::vector<std::string> path = {"PATH=/usr/bin:/bin"};
      EXPECT_TRUE(run_errand("exit 0", path, Millis(20'000)));
      EXPECT_FALSE(run_errand("sleep 60", path, Millis(50)));
      EXPECT_EQ(run_teed({.argv = {"sh", "-c", "exit 3"}, .environment = path})->how,
                End::with_code(3));
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    EXPECT_EQ(end_of(child), End::with_code(0)) << (ours ? "as a program" : "as a library");
  }
}

}  // namespace
}  // namespace stint::os
