// Strikes a real program at every system call in turn: stopped, killed, or told that the call
// failed.
//
// A first, plain run under strace counts the calls of a chosen set from the first one that mentions
// a given path. Then the program is run once for each call and blow, in a fresh world each time,
// and the caller looks at what is left. No change to the program is needed.
//
//   Stop    the call is made, then the process stops; while_stopped() is called; then it goes on
//   Kill    the process dies instead of making the call: what the call before it did is the last
//   Eio, Enospc   the call is not made, and fails with that error
//
// strace counts calls per process and per name: a point is (name, number). A program that starts
// other processes may be struck in whichever of them makes that many calls; for one process it is
// exact.
//
//   const auto report = sweep({.command = {.argv = {"stint", "acquire", "r"}},
//                              .from = store,
//                              .prepare = fresh_store,
//                              .check = [](const Strike& s) { return problem_or_empty; }});
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/support/process.h"

namespace stint::test {

enum class Blow { Stop, Kill, Eio, Enospc };
std::string_view word(Blow blow);
std::optional<Blow> parse_blow(std::string_view word);

// Calls that open, change, sync, name or lock files, or talk over a socket.
std::vector<std::string> default_syscalls();

struct Strike {
  Blow blow = Blow::Kill;
  std::string syscall;
  int nth = 0;          // of that name, in that process
  std::string line;     // the call as the plain run showed it
  bool struck = false;  // false: this run made fewer calls, and ended untouched
  Finished result;      // of the program; empty in while_stopped()

  std::string name() const;  // "kill at pwrite64 number 3: pwrite64(5, ..."
};

struct SweepPlan {
  Command command;
  std::string from;  // text of the first call that counts: a path, or "htons(5432)"; empty: all
  std::vector<std::string> syscalls = default_syscalls();
  std::vector<Blow> blows = {Blow::Stop, Blow::Kill, Blow::Eio, Blow::Enospc};
  std::size_t most_points = 0;  // for each blow; zero: all; else spread evenly over them
  Millis deadline{20'000};      // of one run
  std::function<void()> prepare = {};
  std::function<void(const Strike&)> while_stopped = {};
  // What is wrong with the world after this run; empty: nothing.
  std::function<std::string(const Strike&)> check = {};
};

struct SweepReport {
  struct Row {
    int points = 0;  // in the plain run
    std::map<Blow, int> struck;
  };
  std::map<std::string, Row> rows;  // by system call
  int runs = 0;
  std::vector<std::string> missed;    // planned, but that run made fewer calls
  std::vector<std::string> failures;  // what check() said, with the point
  // A table: system call, points, and how many were struck by each blow; then told(). With
  // GTEST_BRIEF set told() alone.
  std::string text() const;
  // How many runs, and what failed.
  std::string told() const;
};

// Code::Unavailable: no strace, or it may not trace here, or the plain run fails or shows no such
// call.
Result<SweepReport> sweep(const SweepPlan& plan);

}  // namespace stint::test
