#include "bench/bench.h"

#include <algorithm>
#include <cstdio>

#include "os/clock.h"

namespace stint::bench {

double seconds_of(const std::function<void()>& work) {
  const os::SystemClock clock;
  const MonoTime start = clock.mono();
  work();
  return std::chrono::duration<double>(clock.mono() - start).count();
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

void print_header() {
  std::printf("| comparison | ours | against | ratio | goal | met |\n|---|---|---|---|---|---|\n");
}

bool print(const Comparison& c) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < c.our_values.size(); ++i) {
    ratios.push_back(c.our_values[i] / c.their_values[i]);
  }
  const Spread ours = spread_of(c.our_values);
  const Spread theirs = spread_of(c.their_values);
  const Spread ratio = spread_of(ratios);
  const bool met = c.goal == Goal::AtMost ? ratio.median <= c.bound : ratio.median >= c.bound;
  std::printf(
      "| %s | %s %.3g [%.3g..%.3g] | %s %.3g [%.3g..%.3g] | %.2f [%.2f..%.2f] | %s %.3g | %s |\n",
      c.name.c_str(), c.ours.c_str(), ours.median, ours.least, ours.most, c.theirs.c_str(),
      theirs.median, theirs.least, theirs.most, ratio.median, ratio.least, ratio.most,
      c.goal == Goal::AtMost ? "at most" : "at least", c.bound, met ? "yes" : "NO");
  std::fflush(stdout);
  return met;
}

}  // namespace stint::bench
