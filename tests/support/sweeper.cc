#include "tests/support/sweeper.h"

#include <signal.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/text.h"

namespace stint::test {
namespace {

constexpr Blow kBlows[] = {Blow::Stop, Blow::Kill, Blow::Eio, Blow::Enospc};

struct Point {
  std::string syscall;
  int nth = 0;
  std::string line;
};

// Shown in the plain run although they may not be struck, so that the first use of a path is seen.
const std::vector<std::string>& openers() {
  static const std::vector<std::string> all = {"open", "openat", "openat2", "creat", "connect"};
  return all;
}

// A question mark lets strace pass over names that this machine does not have.
std::string set_of(const std::vector<std::string>& syscalls) {
  std::string out;
  for (const std::string& name : syscalls) out += cat(out.empty() ? "" : ",", "?", name);
  return out;
}

Command traced(const SweepPlan& plan, const std::string& trace, const std::string& inject) {
  std::vector<std::string> shown = plan.syscalls;
  shown.insert(shown.end(), openers().begin(), openers().end());
  Command command = plan.command;
  command.one_processor = true;
  std::vector<std::string> argv = {"strace", "-f",  "-s", "256",
                                   "-o",     trace, "-e", "trace=" + set_of(shown)};
  if (!inject.empty()) argv.insert(argv.end(), {"-e", "inject=" + inject});
  argv.emplace_back("--");
  command.argv.insert(command.argv.begin(), argv.begin(), argv.end());
  return command;
}

struct Call {
  std::string pid;
  std::string name;
  std::string text;
};

// "4711 openat(AT_FDCWD, ...": other lines (signals, ends, second halves) are no calls.
std::optional<Call> parse_call(std::string_view line) {
  const auto space = line.find(' ');
  if (space == std::string_view::npos || !parse_digits(line.substr(0, space))) return std::nullopt;
  const std::string_view rest = trim(line.substr(space));
  const auto bracket = rest.find('(');
  if (bracket == std::string_view::npos || bracket == 0) return std::nullopt;
  const std::string_view name = rest.substr(0, bracket);
  const bool plain = std::ranges::all_of(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
  if (!plain) return std::nullopt;
  return Call{std::string(line.substr(0, space)), std::string(name), std::string(rest)};
}

std::vector<Point> find_points(const SweepPlan& plan, const std::string& trace) {
  std::map<std::pair<std::string, std::string>, int> counts;  // by process and name
  std::vector<Point> points;
  bool begun = plan.from.empty();
  for (const std::string_view line : split(trace, '\n')) {
    const auto call = parse_call(line);
    if (!call) continue;
    const int nth = ++counts[{call->pid, call->name}];
    begun = begun || call->text.find(plan.from) != std::string::npos;
    const bool chosen = std::ranges::find(plan.syscalls, call->name) != plan.syscalls.end();
    if (begun && chosen) points.push_back({call->name, nth, call->text});
  }
  return points;
}

std::string injection(Blow blow, const Point& point) {
  const std::string when = cat(":when=", point.nth);
  switch (blow) {
    case Blow::Stop: return cat("?", point.syscall, ":signal=STOP", when);
    case Blow::Kill: return cat("?", point.syscall, ":signal=KILL", when);
    case Blow::Eio: return cat("?", point.syscall, ":error=EIO", when);
    case Blow::Enospc: return cat("?", point.syscall, ":error=ENOSPC", when);
  }
  return {};
}

std::string_view mark_of(Blow blow) {
  switch (blow) {
    case Blow::Stop: return "--- stopped by SIGSTOP ---";
    case Blow::Kill: return "+++ killed by SIGKILL +++";
    case Blow::Eio: return "(INJECTED)";
    case Blow::Enospc: return "(INJECTED)";
  }
  return {};
}

// The process that stands still, once strace has seen it stop.
std::optional<pid_t> stopped_process(const std::string& trace) {
  for (const std::string_view line : split(trace, '\n')) {
    if (line.find(mark_of(Blow::Stop)) == std::string_view::npos) continue;
    const auto pid = parse_digits(line.substr(0, line.find(' ')));
    if (pid) return static_cast<pid_t>(*pid);
  }
  return std::nullopt;
}

class Sweep {
 public:
  explicit Sweep(const SweepPlan& plan) : plan_(plan), trace_(folder_.file("trace")) {}

  Result<SweepReport> run() {
    if (find_program("strace").empty()) {
      return unavailable("strace is not installed: apt-get install strace");
    }
    if (plan_.prepare) plan_.prepare();
    const Finished plain = test::run(traced(plan_, trace_, ""), plan_.deadline);
    const std::vector<Point> points = find_points(plan_, read_text(trace_));
    if (plain.timed_out || points.empty()) {
      return unavailable(cat("the plain run shows no call to strike: exit ",
                             plain.exit_code.value_or(-1), ", ", plain.err));
    }
    for (const Point& point : points) ++report_.rows[point.syscall].points;
    for (const Blow blow : plan_.blows) {
      for (const Point& point : chosen(points)) strike(blow, point);
    }
    return report_;
  }

 private:
  std::vector<Point> chosen(const std::vector<Point>& points) const {
    if (plan_.most_points == 0 || points.size() <= plan_.most_points) return points;
    std::vector<Point> out;
    for (std::size_t i = 0; i < plan_.most_points; ++i) {
      out.push_back(points[i * points.size() / plan_.most_points]);
    }
    return out;
  }

  void strike(Blow blow, const Point& point) {
    ++report_.runs;
    Strike strike{.blow = blow,
                  .syscall = point.syscall,
                  .nth = point.nth,
                  .line = point.line,
                  .struck = false,
                  .result = {}};
    if (plan_.prepare) plan_.prepare();
    write_text(trace_, "");
    const Command command = traced(plan_, trace_, injection(blow, point));
    strike.result =
        blow == Blow::Stop ? run_and_stop(command, strike) : test::run(command, plan_.deadline);
    strike.struck = read_text(trace_).find(mark_of(blow)) != std::string::npos;
    if (strike.struck) {
      ++report_.rows[point.syscall].struck[blow];
    } else {
      report_.missed.push_back(strike.name());
    }
    std::string problem = plan_.check ? plan_.check(strike) : std::string();
    if (problem.empty() && strike.result.timed_out) problem = "it did not end";
    if (!problem.empty()) report_.failures.push_back(cat(strike.name(), "\n    ", problem));
  }

  Finished run_and_stop(const Command& command, Strike& strike) {
    const MonoTime begun = now();
    Child child(command);
    std::optional<pid_t> stopped;
    wait_until(
        [&] {
          stopped = stopped_process(read_text(trace_));
          return stopped || !child.running();
        },
        plan_.deadline);
    if (stopped) {
      strike.struck = true;
      if (plan_.while_stopped) plan_.while_stopped(strike);
      ::kill(*stopped, SIGCONT);
    }
    Finished done;
    const auto exit = child.wait(plan_.deadline);
    done.timed_out = !exit;
    if (exit) {
      done.exit_code = exit->code;
      done.signal = exit->signal;
    }
    done.out = child.out();
    done.err = child.err();
    done.took = std::chrono::duration_cast<Millis>(now() - begun);
    return done;
  }

  const SweepPlan& plan_;
  const TempDir folder_;
  const std::string trace_;
  SweepReport report_;
};

std::string cell(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

}  // namespace

std::string_view word(Blow blow) {
  switch (blow) {
    case Blow::Stop: return "stop";
    case Blow::Kill: return "kill";
    case Blow::Eio: return "eio";
    case Blow::Enospc: return "enospc";
  }
  return {};
}

std::optional<Blow> parse_blow(std::string_view text) {
  for (const Blow blow : kBlows) {
    if (word(blow) == text) return blow;
  }
  return std::nullopt;
}

std::vector<std::string> default_syscalls() {
  return {"open",      "openat",   "creat",          "read",      "pread64",  "write",
          "pwrite64",  "writev",   "fsync",          "fdatasync", "truncate", "ftruncate",
          "fallocate", "rename",   "renameat",       "renameat2", "link",     "linkat",
          "unlink",    "unlinkat", "mkdir",          "mkdirat",   "fcntl",    "flock",
          "close",     "fchmod",   "connect",        "sendto",    "recvfrom", "sendmsg",
          "recvmsg",   "sendfile", "copy_file_range"};
}

std::string Strike::name() const {
  return cat(word(blow), " at ", syscall, " number ", nth, ": ", line);
}

std::string SweepReport::text() const {
  constexpr std::size_t kName = 12;
  constexpr std::size_t kNumber = 8;
  // Among a whole suite's output the tables would hide the one line that matters.
  if (std::getenv("GTEST_BRIEF") != nullptr) return told();
  std::string out = cat(cell("call", kName), cell("points", kNumber));
  for (const Blow blow : kBlows) out += cell(std::string(word(blow)), kNumber);
  out += '\n';
  Row sum;
  const auto add_line = [&out](const std::string& name, const Row& row) {
    out += cat(cell(name, kName), cell(std::to_string(row.points), kNumber));
    for (const Blow blow : kBlows) {
      const auto count = row.struck.find(blow);
      out += cell(std::to_string(count == row.struck.end() ? 0 : count->second), kNumber);
    }
    out += '\n';
  };
  for (const auto& [name, row] : rows) {
    add_line(name, row);
    sum.points += row.points;
    for (const auto& [blow, count] : row.struck) sum.struck[blow] += count;
  }
  add_line("all", sum);
  return out + told();
}

std::string SweepReport::told() const {
  std::string out = cat(runs, " runs, ", missed.size(), " missed, ", failures.size(), " failed\n");
  for (const std::string& failure : failures) out += cat("  ", failure, '\n');
  return out;
}

Result<SweepReport> sweep(const SweepPlan& plan) { return Sweep(plan).run(); }

}  // namespace stint::test
