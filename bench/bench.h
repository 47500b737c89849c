// Comparisons in one run: both sides take turns, and only their ratio is quoted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/time.h"

namespace stint::bench {

double seconds_of(const std::function<void()>& work);

struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};
Spread spread_of(std::vector<double> values);

enum class Goal { AtMost, AtLeast };

// One line of the table.
struct Comparison {
  std::string name;
  std::string ours;    // what is measured, with its unit
  std::string theirs;  // against what
  std::vector<double> our_values;
  std::vector<double> their_values;  // same length: round by round
  Goal goal = Goal::AtMost;
  double bound = 0;
};

// | name | ours | theirs | ratio [least..most] | goal | met |
void print_header();
// False: it misses its goal.
bool print(const Comparison& comparison);

}  // namespace stint::bench
