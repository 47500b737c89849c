// Running real programs from a test: to the end with a deadline, or in the background.
//
// Output goes to files, not pipes: a program that writes much, or whose children outlive it, never
// blocks the test. Nothing here sleeps and hopes: wait_until() waits for a condition.
//
//   const Finished done = run({.argv = {"/bin/cat"}, .stdin_text = "hello"}, 5s);
//   EXPECT_EQ(done.exit_code, 0) << done.err;
//
// Thread safety: each object belongs to one thread.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "os/fd.h"

namespace stint::test {

MonoTime now();

// True as soon as the condition is; false when the deadline has passed and it still is not.
bool wait_until(const std::function<bool()>& condition, Millis deadline = Millis(60'000));

// A folder under $TMPDIR or /tmp, removed with all that is in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const;

 private:
  std::string path_;
};

void write_text(const std::string& path, std::string_view text);
// Empty if it cannot be read: a log that is not there yet has nothing in it.
std::string read_text(const std::string& path);

struct Command {
  std::vector<std::string> argv;  // the first is looked up in $PATH
  // On top of the test's own environment; an empty optional takes a variable away.
  std::vector<std::pair<std::string, std::optional<std::string>>> env = {};
  std::string stdin_text = {};
  std::string cwd = {};
  // SIGKILL when the *thread* that spawned it ends: for servers, so that a killed test leaves none.
  bool die_with_parent = false;
  // It and its children on one processor: a tracer and its program are ten times faster so.
  bool one_processor = false;
};

struct Exit {
  std::optional<int> code;  // empty: ended by `signal`
  int signal = 0;
};

struct Finished {
  bool timed_out = false;  // it was killed with its whole group
  std::optional<int> exit_code;
  int signal = 0;
  std::string out;
  std::string err;
  Millis took{0};
};

// A program in the background, in a process group of its own. The destructor kills the group.
class Child {
 public:
  explicit Child(const Command& command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  // Empty: still running at the deadline. May be called again after the end.
  std::optional<Exit> wait(Millis deadline);
  bool running() { return !wait(Millis(0)); }
  void signal(int number) const;
  void signal_group(int number) const;
  // What it has written so far.
  std::string out() const;
  std::string err() const;

 private:
  TempDir files_;
  pid_t pid_ = -1;
  os::Fd pidfd_;
  std::optional<Exit> exit_;
};

Finished run(const Command& command, Millis deadline = Millis(60'000));

// Not a zombie, and there.
bool alive(pid_t pid);
// 'R', 'S', 'T' (stopped), 't' (stopped by a tracer) ...; 0 if there is no such process.
char state_of(pid_t pid);
// Children, their children and so on; those that were adopted by another are not found.
std::vector<pid_t> descendants(pid_t pid);

// Where a program is in $PATH; empty if nowhere.
std::string find_program(std::string_view name);

}  // namespace stint::test
