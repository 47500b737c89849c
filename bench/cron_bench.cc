// How long next() of a cron expression takes: ordinary ones, and the worst that are legal.
#include <cstdio>

#include "app/zones.h"
#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "core/cron.h"

namespace stint::bench {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr int kRounds = 5;
constexpr sys_seconds kStart = std::chrono::sys_days(std::chrono::year(2026) / 11 / 15);

core::Zone zone(const std::string& name) {
  auto found = app::find_zone(name, app::Environment({}));
  CHECK(found, "the time zone cannot be read");
  return std::move(*found);
}

core::CronExpression expression(const char* text) {
  auto parsed = core::parse_cron(text);
  CHECK(parsed, text);
  return std::move(*parsed);
}

// Calls a second, each from where the one before ended, over and over through ten years.
double rate(const core::CronExpression& e, const core::Zone& in) {
  constexpr int kCalls = 200'000;
  constexpr sys_seconds kEnd = kStart + std::chrono::years(10);
  sys_seconds at = kStart;
  const double took = seconds_of([&] {
    for (int i = 0; i < kCalls; ++i) {
      const auto next = core::next_time(e, in, at, core::Bound::Exclusive);
      CHECK(next, "it never fires");
      at = next->instant < kEnd ? next->instant : kStart;
    }
  });
  return kCalls / took;
}

bool ordinary_lines() {
  struct Line {
    const char* text;
    const char* zone;
  };
  bool ok = true;
  for (const Line& line :
       {Line{"*/15 * * * *", "UTC"}, Line{"*/15 * * * *", "Europe/Berlin"},
        Line{"30 6 * * mon-fri", "America/New_York"}, Line{"0 9 1,15 * *", "Europe/Berlin"},
        Line{"0 0 LW * *", "America/Sao_Paulo"}, Line{"*/10 * * * * *", "Australia/Lord_Howe"}}) {
    const core::Zone in = zone(line.zone);
    const core::CronExpression e = expression(line.text);
    // Given as time for a call: a million a second is one microsecond each.
    Measure measure{cat("next() of '", line.text, "' in ", line.zone), "us", {}, 1};
    for (int round = 0; round < kRounds; ++round) measure.values.push_back(1e6 / rate(e, in));
    ok = print(measure) && ok;
  }
  return ok;
}

// The slowest of many starting points, each the quickest of a few tries: a machine that does other
// work as well interrupts some.
double slowest(const core::CronExpression& e, const core::Zone& in, bool back) {
  double worst = 0;
  for (int year = 1970; year < 2500; year += 3) {
    const sys_seconds from = std::chrono::sys_days(std::chrono::year(year) / 3 / 1);
    double quickest = 1;
    for (int i = 0; i < 5; ++i) {
      quickest = std::min(quickest, seconds_of([&] {
                            const auto found =
                                back ? core::previous_time(e, in, from, core::Bound::Exclusive)
                                     : core::next_time(e, in, from, core::Bound::Exclusive);
                            CHECK(!found || found->instant != from, "it stands still");
                          }));
    }
    worst = std::max(worst, quickest);
  }
  return worst * 1e6;
}

bool worst_lines() {
  bool ok = true;
  // A fifth Monday in February comes every 28 or 40 years; the last one of these never comes.
  for (const char* text : {"30 2 * 2 mon#5", "30 0 29W 2 *", "30 2 29 2 *", "0 0 30 2 *"}) {
    for (const char* name : {"America/New_York", "Africa/Cairo"}) {
      const core::Zone in = zone(name);
      const core::CronExpression e = expression(text);
      for (const bool back : {false, true}) {
        Measure measure{cat("worst ", back ? "previous()" : "next()", " of '", text, "' in ", name),
                        "us",
                        {},
                        50};
        for (int round = 0; round < kRounds; ++round)
          measure.values.push_back(slowest(e, in, back));
        ok = print(measure) && ok;
      }
    }
  }
  return ok;
}

}  // namespace
}  // namespace stint::bench

// cron_bench: the table on stdout; exit 1 if a goal is missed.
int main() {
  using namespace stint::bench;
  print_header();
  const bool ordinary = ordinary_lines();
  return worst_lines() && ordinary ? 0 : 1;
}
