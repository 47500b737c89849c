// A ttl that was measured: statistics of recorded runs, what would be a good setting, and both
// settings replayed against those runs. Pure.
//
// The public case behind it: a rescue after 6 minutes, runs of 9 to 47 minutes, and a job that ran
// two or three times every night for a week.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"

namespace stint::report {

struct RunSample {
  Millis length{0};
  bool clean = true;  // it ended by itself; otherwise it was lost, and `length` is what it had
};

struct TuneInput {
  std::vector<RunSample> runs;
  Millis ttl{90'000};                   // the present setting
  std::optional<Millis> interval;       // between two slots
  std::optional<std::size_t> backfill;  // the present max_backfill
  std::optional<Millis> least_slack;    // left before the deadline at the latest renewal
  int suspends = 0;                     // runs during which the machine slept
};

// What a setting would have done to the recorded runs.
struct Replay {
  Millis ttl{0};
  std::size_t lost = 0;     // runs that outlive a lease of this length that nobody renews
  std::size_t waiting = 0;  // runs after which the next one would have had to wait
};

struct TuneReport {
  std::size_t count = 0;
  std::size_t unclean = 0;
  Millis p50{0};
  Millis p95{0};
  Millis p99{0};
  Millis worst{0};
  std::optional<Millis> least_slack;
  int suspends = 0;
  Replay present;
  Replay advised;         // for work that does not renew: 1.5 to 2 times the worst clean run
  Millis renewed_ttl{0};  // for `run` and jobs, which renew at a third: p95 + two heartbeats
  Millis heartbeat{0};    // of that
  std::optional<std::size_t> backfill;
  std::vector<std::string> flags;  // sentences: what is wrong with the present setting
};

// Too few runs to say anything: count only, and a flag that says so.
TuneReport tune(const TuneInput& input);

// The number of runs in each of `bins` stretches of equal length from the shortest to the worst.
struct Bin {
  Millis from{0};
  Millis to{0};
  std::size_t count = 0;
};
std::vector<Bin> histogram(const std::vector<RunSample>& runs, std::size_t bins);

// For a terminal, `columns` wide.
std::vector<std::string> histogram_lines(const std::vector<Bin>& bins, std::size_t columns);
// A whole document; the present and the advised ttl are marked.
std::string histogram_svg(const std::string& title, const std::vector<Bin>& bins,
                          const TuneReport& report);

}  // namespace stint::report
