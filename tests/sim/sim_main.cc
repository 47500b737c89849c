// sim SEEDS [FIRST]: runs the simulation over SEEDS seeds from FIRST (default 1) on and prints one
// line a seed; stdout is the same on every machine for one commit. Exit 1 if a law was broken.
#include <cstdio>
#include <iostream>
#include <string>

#include "base/text.h"
#include "tests/support/process.h"
#include "tests/support/sim_world.h"

namespace stint::test {
namespace {

struct Totals {
  std::uint64_t seeds = 0;
  std::size_t steps = 0;
  std::uint64_t faults = 0;
  std::uint64_t grants = 0;
  std::uint64_t renewals = 0;
  std::uint64_t violations = 0;
  std::uint64_t timelines = 0;  // all fingerprints in one number
};

std::uint64_t faults_of(const SimReport& report) {
  std::uint64_t sum = 0;
  for (const auto& [name, count] : report.faults) sum += static_cast<std::uint64_t>(count);
  return sum;
}

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

void run_one(std::uint64_t seed, Totals& totals) {
  const SimReport report = run_sim({.seed = seed});
  const bool kept = report.problems.empty();
  std::cout << "seed " << seed << " steps " << report.steps << " faults " << faults_of(report)
            << " timeline " << hex(report.fingerprint) << (kept ? " ok" : " VIOLATED") << '\n';
  if (!kept) std::cout << run_sim({.seed = seed, .keep_trace = true}).text() << '\n';
  ++totals.seeds;
  totals.steps += report.steps;
  totals.faults += faults_of(report);
  totals.grants += static_cast<std::uint64_t>(report.grants);
  totals.renewals += static_cast<std::uint64_t>(report.renewals);
  totals.violations += kept ? 0 : 1;
  constexpr std::uint64_t kPrime = 0x100000001b3U;
  totals.timelines = (totals.timelines ^ report.fingerprint) * kPrime;
}

int run_all(std::uint64_t seeds, std::uint64_t first) {
  const MonoTime begun = now();
  Totals totals;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) run_one(seed, totals);
  std::cout << "total " << totals.seeds << " seeds, " << totals.steps << " steps, " << totals.faults
            << " faults, " << totals.grants << " grants, " << totals.renewals << " renewals, "
            << totals.violations << " violations, timelines " << hex(totals.timelines) << '\n';
  const auto took = std::chrono::duration_cast<Millis>(now() - begun);
  std::cerr << "simulated in " << took.count() << " ms\n";
  return totals.violations == 0 ? 0 : 1;
}

}  // namespace
}  // namespace stint::test

int main(int argc, char** argv) {
  const auto seeds = argc > 1 ? stint::parse_digits(argv[1]) : std::nullopt;
  const auto first = argc > 2 ? stint::parse_digits(argv[2]) : std::optional<std::uint64_t>(1);
  if (!seeds || !first || argc > 3) {
    std::cerr << "usage: sim SEEDS [FIRST]\n";
    return 2;
  }
  return stint::test::run_all(*seeds, *first);
}
