#include "bench/bench.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "tests/support/process.h"

namespace stint::bench {

double seconds_of(const std::function<void()>& work) {
  const os::SystemClock clock;
  const MonoTime start = clock.mono();
  work();
  return std::chrono::duration<double>(clock.mono() - start).count();
}

double seconds_of_servers() {
  double nanoseconds = 0;
  for (const pid_t pid : test::descendants(::getpid())) {
    std::error_code gone;
    for (const auto& task :
         std::filesystem::directory_iterator(cat("/proc/", pid, "/task"), gone)) {
      nanoseconds += std::atof(test::read_text(task.path() / "schedstat").c_str());
    }
  }
  return nanoseconds / 1e9;
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

void Comparison::add(double our_value, double their_value) {
  our_values.push_back(our_value);
  their_values.push_back(their_value);
}

void print_header() {
  std::printf("| comparison | ours | against | ratio | goal | met |\n|---|---|---|---|---|---|\n");
}

namespace {

std::string shown(const Spread& spread, const char* format) {
  const auto number = [format](double value) {
    char text[32];
    // Three figures, and never an exponent.
    std::snprintf(text, sizeof text, value >= 1000 ? "%.0f" : format, value);
    return std::string(text);
  };
  return cat(number(spread.median), " [", number(spread.least), "..", number(spread.most), "]");
}

const char* mark(bool met) { return met ? "yes" : "NO"; }

}  // namespace

bool print(const Comparison& c) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < c.our_values.size(); ++i) {
    ratios.push_back(c.our_values[i] / c.their_values[i]);
  }
  const Spread ratio = spread_of(ratios);
  const bool met = c.goal == Goal::None ||
                   (c.goal == Goal::AtMost ? ratio.median <= c.bound : ratio.median >= c.bound);
  std::printf("| %s | %s %s | %s %s | %s |", c.name.c_str(), c.ours.c_str(),
              shown(spread_of(c.our_values), "%.3g").c_str(), c.theirs.c_str(),
              shown(spread_of(c.their_values), "%.3g").c_str(), shown(ratio, "%.2f").c_str());
  if (c.goal == Goal::None) {
    std::printf(" - | - |\n");
  } else {
    std::printf(" %s %.3g | %s |\n", c.goal == Goal::AtMost ? "at most" : "at least", c.bound,
                mark(met));
  }
  std::fflush(stdout);
  return met;
}

bool print(const Measure& m) {
  const Spread values = spread_of(m.values);
  const bool met = values.median <= m.at_most;
  std::printf("| %s | %s %s | - | - | at most %.3g %s | %s |\n", m.name.c_str(), m.unit.c_str(),
              shown(values, "%.3g").c_str(), m.at_most, m.unit.c_str(), mark(met));
  std::fflush(stdout);
  return met;
}

Took take_turns(const Turns& turns, const std::string& name, const std::string& against) {
  Took out;
  out.wall = {name, "us", against + ", us", {}, {}, Goal::None, 0};
  out.quick = out.wall;
  out.quick.name += ": quickest tenth of the calls";
  out.server = {
      name + ": processor time of the server", "us", against + ", us", {}, {}, Goal::None, 0};
  const auto micros = [](std::vector<double>& seconds, std::size_t part) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / part] * 1e6;
  };
  // Few at a time: the server's processor time is asked between them, and that costs as well.
  constexpr int kBatch = 10;
  for (int round = 0; round < turns.rounds; ++round) {
    std::vector<double> ours;
    std::vector<double> theirs;
    double our_server = 0;
    double their_server = 0;
    for (int i = 0; i < turns.each; i += kBatch) {
      const double start = seconds_of_servers();
      for (int k = 0; k < kBatch; ++k) theirs.push_back(seconds_of(turns.theirs));
      const double middle = seconds_of_servers();
      for (int k = 0; k < kBatch; ++k) ours.push_back(seconds_of(turns.ours));
      their_server += middle - start;
      our_server += seconds_of_servers() - middle;
    }
    const auto calls = static_cast<double>(ours.size());
    out.server.add(our_server * 1e6 / calls, their_server * 1e6 / calls);
    out.wall.add(micros(ours, 2), micros(theirs, 2));
    out.quick.add(micros(ours, 10), micros(theirs, 10));
  }
  return out;
}

namespace {

double wall_ms(std::vector<std::string> argv, const std::string& state) {
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  std::string home = cat("XDG_STATE_HOME=", state);
  std::string path = "PATH=/usr/bin:/bin";
  char* const environment[] = {home.data(), path.data(), nullptr};
  return 1e3 * seconds_of([&] {
           pid_t child = 0;
           CHECK(::posix_spawn(&child, words[0], nullptr, nullptr, words.data(), environment) == 0,
                 "spawn");
           int status = 0;
           CHECK(::waitpid(child, &status, 0) == child && status == 0, "the command failed");
         });
}

}  // namespace

Comparison commands_in_turn(Commands commands) {
  for (int round = 0; round < commands.rounds; ++round) {
    std::vector<double> ours;
    std::vector<double> theirs;
    for (int i = 0; i < commands.runs; ++i) {
      theirs.push_back(wall_ms(commands.theirs, commands.state));
      ours.push_back(wall_ms(commands.ours, commands.state));
    }
    commands.line.add(spread_of(ours).median, spread_of(theirs).median);
  }
  return std::move(commands.line);
}

}  // namespace stint::bench
