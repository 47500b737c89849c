// Comparisons in one run: both sides take turns, and only their ratio is quoted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"

namespace stint::bench {

double seconds_of(const std::function<void()>& work);

// Processor time so far of every process that this one started and that lives: of the server. A
// machine that others use as well makes times a matter of luck; processor time is less so.
double seconds_of_servers();

struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};
Spread spread_of(std::vector<double> values);

enum class Goal { AtMost, AtLeast, None };

// One line of the table.
struct Comparison {
  std::string name;
  std::string ours;    // what is measured, with its unit
  std::string theirs;  // against what
  std::vector<double> our_values;
  std::vector<double> their_values;  // same length: round by round
  Goal goal = Goal::AtMost;
  double bound = 0;

  void add(double our_value, double their_value);
};

// A line whose goal is a number by itself.
struct Measure {
  std::string name;
  std::string unit;
  std::vector<double> values;
  double at_most = 0;
};

// | name | ours | theirs | ratio [least..most] | goal | met |
void print_header();
// False: it misses its goal.
bool print(const Comparison& comparison);
bool print(const Measure& measure);

// Two kinds of calls in turn, so that whatever else the machine does meets both alike. A round's
// value is the median call.
struct Turns {
  std::function<void()> ours;
  std::function<void()> theirs;
  int each = 100;  // calls of both in a round
  int rounds = 5;
};
struct Took {
  Comparison wall;    // microseconds a call
  Comparison quick;   // the same of the quickest tenth: nearly what an idle machine would show
  Comparison server;  // processor time of the server a call, microseconds: mean of a round
};
Took take_turns(const Turns& turns, const std::string& name, const std::string& against);

// Two commands in turn, whole processes. A round's value is the median run, in milliseconds.
struct Commands {
  Comparison line;
  std::vector<std::string> ours;
  std::vector<std::string> theirs;
  std::string state;  // of the user: XDG_STATE_HOME; the environment has a PATH besides
  int runs = 100;
  int rounds = 5;
};
Comparison commands_in_turn(Commands commands);

}  // namespace stint::bench
