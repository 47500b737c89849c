// The guardian found the deadline passed and ended the tree, while the supervisor was held up: when
// that goes on, it knows why its child is gone. G7
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "os/fd.h"
#include "tests/cli/stint.h"
#include "tests/support/asleep.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;

// A pipe that takes nothing any more until somebody reads: whoever writes to it is held up.
class FullPipe {
 public:
  explicit FullPipe(const std::string& path) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    fd_ = os::Fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const std::string page(4096, '.');
    while (::write(fd_.get(), page.data(), page.size()) > 0) {
    }
  }
  // What was written to it, without the filling. Returns when nothing more is in it.
  std::string read() {
    std::string text;
    char buffer[65536];
    for (ssize_t got = 0; (got = ::read(fd_.get(), buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(got));
    }
    std::erase(text, '.');
    return text;
  }

 private:
  os::Fd fd_;
};

pid_t pid_in(const std::string& path) {
  return static_cast<pid_t>(parse_digits(trim(read_text(path))).value_or(0));
}

// A run that talks to a full pipe, on a machine whose time is played: a ttl of a minute, of which
// the deadline comes after 49.4 s and the guardian after 59.4 s.
class HeldUp : public ::testing::Test {
 protected:
  HeldUp() : holder_(command()) {
    EXPECT_TRUE(wait_until([&] { return pid_in(pid_file()) > 0; }));
    // It finds the store gone at the next renewal, and is held up while it says so.
    take_store_away();
    machine_.suspend(std::chrono::seconds(25));
    EXPECT_TRUE(wait_until([&] { return held_up(); })) << read_text(call());
  }

  Command command() const {
    Command run = stint_.command(
        {"run", "r", "--ttl", "60s", "--", "sh", "-c",
         cat("trap 'exit 9' TERM; echo $$ >", pid_file(), "; while :; do sleep 0.02; done")});
    const std::vector<std::string> before = {"sh", "-c", "exec \"$@\" 2>\"$0\"", talk()};
    run.argv.insert(run.argv.begin(), before.begin(), before.end());
    return machine_.here(run, ASLEEP);
  }
  std::string lease(const std::string& field) const {
    const Command show = stint_.command({"show", "r", "--json"});
    return json_field(run(machine_.here(show, ASLEEP)).out, field);
  }
  void take_store_away() { EXPECT_EQ(::rename(database_.c_str(), away_.c_str()), 0); }
  void bring_store_back() { EXPECT_EQ(::rename(away_.c_str(), database_.c_str()), 0); }
  bool working() const { return alive(pid_in(pid_file())); }
  // In write(2, ...).
  bool held_up() const { return read_text(call()).starts_with(cat(SYS_write, " 0x2 ")); }
  // Reads what it says until it ends; its exit code.
  std::optional<int> let_go() {
    EXPECT_TRUE(wait_until([&] {
      said_ += pipe_.read();
      return !holder_.running();
    }));
    said_ += pipe_.read();
    return holder_.wait(milliseconds(0)).value_or(Exit{}).code;
  }

  const Stint stint_;
  Machine machine_{stint_.dir().file("asleep")};
  FullPipe pipe_{talk()};
  Child holder_;
  std::string said_;

 private:
  std::string talk() const { return stint_.dir().file("talk"); }
  std::string pid_file() const { return stint_.dir().file("pid"); }
  std::string call() const { return cat("/proc/", holder_.pid(), "/syscall"); }
  const std::string database_ = stint_.database();
  const std::string away_ = stint_.dir().file("away.db");
};

// It is not stopped, so the guardian does not end it; it goes on when it can.
// EVIDENCE-OF: G7
TEST_F(HeldUp, PastTheDeadlineTheGuardianEndsTheTreeAndTheRunExits75AndSaysWhy) {
  machine_.suspend(std::chrono::seconds(40));
  ASSERT_TRUE(wait_until([&] { return !working(); })) << "nobody ended the work";
  EXPECT_TRUE(held_up()) << "it was not the guardian alone";
  EXPECT_EQ(let_go(), 75) << said_;
  EXPECT_NE(said_.find("the store does not answer"), std::string::npos) << said_;
  EXPECT_NE(said_.find("could not be renewed before the deadline"), std::string::npos) << said_;
}

// The guardian hears of renewals from the thread that makes them.
TEST_F(HeldUp, WhileTheLeaseIsRenewedTheWorkGoesOn) {
  bring_store_back();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(wait_until([&] {
      return parse_digits(lease("remaining_ms")).value_or(0) > 50'000;
    })) << "not renewed";
    machine_.suspend(std::chrono::seconds(30));
    EXPECT_TRUE(held_up());
  }
  EXPECT_TRUE(working());
  EXPECT_EQ(lease("token"), "1");
  holder_.signal(SIGTERM);
  EXPECT_EQ(let_go(), 9) << said_;
}

// Stopped past the deadline, and continued before the guardian's patience with it is over.
TEST(GuardianEndedTheTree, OfASupervisorThatWasStoppedAndContinuedWhichExits75) {
  constexpr Millis kPatience{1000};  // of the guardian, from its first blow
  for (int i = 0; i < 5; ++i) {
    const Stint stint;
    const std::string pid_file = stint.dir().file("pid");
    Child holder(stint.command({"run", "r", "--ttl", "1s", "--", "sh", "-c",
                                cat("echo $$ >", pid_file, "; exec sleep 60")}));
    ASSERT_TRUE(wait_until([&] { return pid_in(pid_file) > 0; }));
    const pid_t work = pid_in(pid_file);
    holder.signal(SIGSTOP);
    MonoTime last_alive = now();
    ASSERT_TRUE(wait_until([&] {
      const MonoTime look = now();
      if (alive(work)) last_alive = look;
      return !alive(work);
    }));
    holder.signal(SIGCONT);
    // On a busy machine it may have come too late: then this proves nothing, and is tried again.
    if (now() - last_alive > kPatience / 2) continue;
    const auto exit = holder.wait(milliseconds(10'000));
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, 75) << exit->signal << holder.err();
    EXPECT_NE(holder.err().find("before the deadline"), std::string::npos) << holder.err();
    return;
  }
  GTEST_SKIP() << "this machine is too busy to continue a process in time";
}

}  // namespace
}  // namespace stint::test
