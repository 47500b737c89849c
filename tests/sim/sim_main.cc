// The deterministic simulation. Same commit, same stdout, on every machine, with any number of
// worker processes; times go to stderr. Exit 1 if a law was broken.
//
//   sim SEEDS [--first N] [--jobs N]     seeds N .. N+SEEDS-1, one line each, totals last
//   sim --seed N [--timeline] [--plan]   one seed: with what happened, or with its faults alone
//   sim --seed N --faults FILE           the same world with these faults instead (see --plan)
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/text.h"
#include "tests/sim/sim_site.h"

namespace stint::test {
namespace {

// Everything that the totals add up, by name; what two seeds have is summed.
using Sums = std::map<std::string, std::uint64_t>;

constexpr std::uint64_t kFnvPrime64 = 0x100000001b3U;

std::string hex_of(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

struct SeedResult {
  std::string lines;  // for people, with the newline
  Sums sums;
  std::uint64_t timeline = 0;
};

SeedResult run_seed(std::uint64_t seed) {
  const SimOutcome outcome = play(make_plan(seed), {});
  const bool kept = outcome.problems.empty();
  SeedResult out;
  std::uint64_t faults = 0;
  for (const auto& [kind, count] : outcome.faults) {
    faults += count;
    out.sums[cat("fault ", kind)] = count;
  }
  for (int law = 1; law <= kLaws; ++law) {
    out.sums[cat("law ", law < 10 ? "0" : "", law)] = outcome.looked[static_cast<std::size_t>(law)];
  }
  out.sums["seeds"] = 1;
  out.sums["steps"] = outcome.steps;
  out.sums["faults"] = faults;
  out.sums["grants"] = outcome.grants;
  out.sums["renewals"] = outcome.renewals;
  out.sums["writes"] = outcome.writes;
  out.sums["stale"] = outcome.stale;
  out.sums["items"] = outcome.items;
  out.sums["slots"] = outcome.slots;
  out.sums["violations"] = kept ? 0 : 1;
  out.sums["seconds"] = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(outcome.length).count());
  out.timeline = outcome.fingerprint;
  out.lines = cat("seed ", seed, " steps ", outcome.steps, " faults ", faults, " timeline ",
                  hex_of(outcome.fingerprint), kept ? " ok" : " VIOLATED", '\n');
  for (const std::string& problem : outcome.problems) out.lines += cat("  ", problem, '\n');
  if (!kept) out.lines += cat("  again: build/tests/sim --seed ", seed, " --timeline\n");
  return out;
}

// One result on a pipe: counts first, then the text.
void send(std::ostream& out, const SeedResult& result) {
  out << result.lines.size() << ' ' << result.timeline << ' ' << result.sums.size() << '\n';
  for (const auto& [name, count] : result.sums) out << count << ' ' << name << '\n';
  out << result.lines << std::flush;
}

bool receive(FILE* in, SeedResult& out) {
  unsigned long long size = 0;
  unsigned long long timeline = 0;
  unsigned long long count = 0;
  if (std::fscanf(in, "%llu %llu %llu", &size, &timeline, &count) != 3) return false;
  out.timeline = timeline;
  for (unsigned long long i = 0; i < count; ++i) {
    unsigned long long number = 0;
    char name[64];
    if (std::fscanf(in, "%llu %63[^\n]", &number, name) != 2) return false;
    out.sums[name] = number;
  }
  std::fgetc(in);
  out.lines.resize(size);
  return std::fread(out.lines.data(), 1, size, in) == size;
}

// Every `jobs`-th seed, in a process of its own.
FILE* start_worker(std::uint64_t first, std::uint64_t end, std::uint64_t jobs) {
  int ends[2];
  if (::pipe(ends) != 0) return nullptr;
  const pid_t child = ::fork();
  if (child < 0) return nullptr;
  if (child > 0) {
    ::close(ends[1]);
    return ::fdopen(ends[0], "r");
  }
  ::close(ends[0]);
  FILE* out = ::fdopen(ends[1], "w");
  for (std::uint64_t seed = first; seed < end; seed += jobs) {
    std::ostringstream text;
    send(text, run_seed(seed));
    const std::string bytes = text.str();
    if (std::fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size()) ::_exit(3);
    std::fflush(out);
  }
  std::fclose(out);
  ::_exit(0);
}

double seconds_now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

void print_totals(Sums& sums, std::uint64_t timelines) {
  std::cout << "total " << sums["seeds"] << " seeds, " << sums["steps"] << " steps, "
            << sums["seconds"] / 3600 << " simulated hours, " << sums["faults"] << " faults, "
            << sums["grants"] << " grants, " << sums["renewals"] << " renewals, " << sums["writes"]
            << " writes landed, " << sums["stale"] << " refused, " << sums["items"]
            << " items completed, " << sums["slots"] << " slots accounted for, "
            << sums["violations"] << " violations, timelines " << hex_of(timelines) << "\nfaults:";
  for (const auto& [name, count] : sums) {
    if (name.starts_with("fault ")) std::cout << ' ' << name.substr(6) << '=' << count;
  }
  std::cout << "\nlooked:";
  for (const auto& [name, count] : sums) {
    if (name.starts_with("law ")) std::cout << ' ' << name.substr(4) << '=' << count;
  }
  std::cout << '\n';
}

int run_all(std::uint64_t seeds, std::uint64_t first, std::uint64_t jobs) {
  const double begun = seconds_now();
  std::vector<FILE*> workers;
  for (std::uint64_t i = 0; i < jobs; ++i) {
    workers.push_back(start_worker(first + i, first + seeds, jobs));
    if (workers.back() == nullptr) {
      std::cerr << "sim: no process for a worker\n";
      return 2;
    }
  }
  Sums totals;
  std::uint64_t timelines = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    SeedResult result;
    if (!receive(workers[(seed - first) % jobs], result)) {
      std::cout << "seed " << seed << " DIED\n  again: build/tests/sim --seed " << seed
                << " --timeline\n";
      return 1;
    }
    std::cout << result.lines << std::flush;
    for (const auto& [name, count] : result.sums) totals[name] += count;
    timelines = (timelines ^ result.timeline) * kFnvPrime64;
  }
  for (FILE* worker : workers) std::fclose(worker);
  while (::wait(nullptr) > 0) {
  }
  print_totals(totals, timelines);
  const double took = seconds_now() - begun;
  const double hours = static_cast<double>(totals["seconds"]) / 3600;
  std::cerr << "simulated in " << took << " s on " << jobs << " workers: " << hours / took * 60
            << " simulated hours a minute, " << hours / took * 60 / static_cast<double>(jobs)
            << " on each\n";
  return totals["violations"] == 0 ? 0 : 1;
}

int run_one(const SimPlan& plan, bool timeline) {
  const SimOutcome outcome = play(plan, {.keep_trace = timeline});
  for (const std::string& line : outcome.trace) {
    const std::size_t space = line.find(' ');
    const std::uint64_t ns = parse_digits(line.substr(0, space)).value_or(0) - 3'600'000'000'000U;
    char when[32];
    std::snprintf(when, sizeof when, "%5llu.%06llu",
                  static_cast<unsigned long long>(ns / 1000000000),
                  static_cast<unsigned long long>(ns / 1000 % 1000000));
    std::cout << when << line.substr(space) << '\n';
  }
  std::cout << "seed " << plan.seed << " steps " << outcome.steps << " timeline "
            << hex_of(outcome.fingerprint) << (outcome.problems.empty() ? " ok" : " VIOLATED")
            << '\n';
  for (const std::string& problem : outcome.problems) std::cout << "  " << problem << '\n';
  return outcome.problems.empty() ? 0 : 1;
}

struct Asked {
  std::optional<std::uint64_t> seeds;
  std::optional<std::uint64_t> seed;
  std::uint64_t first = 1;
  std::uint64_t jobs = 1;
  bool timeline = false;
  bool plan = false;
  std::string faults;
};

std::optional<Asked> parse_asked(const std::vector<std::string>& words) {
  Asked out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto number = [&]() -> std::optional<std::uint64_t> {
      return i + 1 < words.size() ? parse_digits(words[++i]) : std::nullopt;
    };
    std::optional<std::uint64_t> value = 1;
    if (word == "--timeline") {
      out.timeline = true;
    } else if (word == "--plan") {
      out.plan = true;
    } else if (word == "--seed") {
      value = out.seed = number();
    } else if (word == "--first") {
      value = number();
      out.first = value.value_or(1);
    } else if (word == "--jobs") {
      value = number();
      out.jobs = value.value_or(1);
    } else if (word == "--faults" && i + 1 < words.size()) {
      out.faults = words[++i];
    } else {
      value = out.seeds = parse_digits(word);
    }
    if (!value) return std::nullopt;
  }
  if (out.seeds.has_value() == out.seed.has_value() || out.jobs == 0) return std::nullopt;
  return out;
}

int go(const Asked& asked) {
  if (asked.seeds) return run_all(*asked.seeds, asked.first, asked.jobs);
  SimPlan plan = make_plan(*asked.seed);
  if (!asked.faults.empty()) {
    std::ifstream file(asked.faults);
    std::ostringstream text;
    text << file.rdbuf();
    auto read = read_plan(*asked.seed, text.str());
    if (!file || !read) {
      std::cerr << "sim: " << (file ? read.error().message : "cannot read the faults") << '\n';
      return 2;
    }
    plan = std::move(*read);
  }
  if (asked.plan) {
    std::cout << plan.text();
    return 0;
  }
  return run_one(plan, asked.timeline);
}

}  // namespace
}  // namespace stint::test

int main(int argc, char** argv) {
  const auto asked = stint::test::parse_asked({argv + 1, argv + argc});
  if (!asked) {
    std::cerr << "usage: sim SEEDS [--first N] [--jobs N]\n"
                 "       sim --seed N [--timeline | --plan] [--faults FILE]\n";
    return 2;
  }
  return stint::test::go(*asked);
}
