// core/cron against the walk of tests/cron/oracle.h: random expressions, a fixed seed, five years
// of each zone. STINT_CRON_EXPRESSIONS=2000 for more than the slice of `make test`.
#include "tests/cron/oracle.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "app/zones.h"
#include "base/rfc3339.h"
#include "base/text.h"
#include "core/cron.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

std::uint64_t expressions_a_zone() {
  return static_cast<std::uint64_t>(asked("STINT_CRON_EXPRESSIONS", 12));
}

struct Place {
  const char* zone;
  int first_year;  // of five
};
// With changes at midnight (Sao Paulo, Beirut, Cairo), of half an hour (Lord Howe), of a whole day
// (Apia 2011), before midnight (Nuuk), and by rule alone (2096).
constexpr Place kPlaces[] = {
    {"America/Sao_Paulo", 2014}, {"Asia/Beirut", 2020},      {"Africa/Cairo", 2010},
    {"Europe/Berlin", 2022},     {"America/New_York", 2022}, {"Australia/Lord_Howe", 2022},
    {"Pacific/Apia", 2009},      {"America/Nuuk", 2021},     {"Europe/Berlin", 2096}};

std::int64_t new_year(int year) {
  return sys_seconds(std::chrono::sys_days(std::chrono::year(year) / 1 / 1))
      .time_since_epoch()
      .count();
}

Firing firing(const core::CronTime& time) {
  return {time.instant.time_since_epoch().count(), time.nominal.time_since_epoch().count()};
}

std::string shown(const Firing& f) {
  return cat(format_rfc3339(sys_seconds(seconds(f.instant)), seconds(0)), " for ",
             format_local(std::chrono::local_seconds(seconds(f.nominal))));
}

// The first difference, told; empty: none.
std::string difference(const std::vector<Firing>& expected, const std::vector<Firing>& found) {
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    if (i < expected.size() && i < found.size() && expected[i] == found[i]) continue;
    return cat("time ", i, ": expected ", i < expected.size() ? shown(expected[i]) : "none",
               ", found ", i < found.size() ? shown(found[i]) : "none");
  }
  return {};
}

std::vector<Firing> forwards(const core::CronExpression& e, const core::Zone& zone,
                             const Timeline& timeline) {
  std::vector<Firing> out;
  auto time =
      core::next_time(e, zone, sys_seconds(seconds(timeline.start)), core::Bound::Inclusive);
  while (time && time->instant.time_since_epoch().count() < timeline.end()) {
    out.push_back(firing(*time));
    time = core::next_time(e, zone, time->instant, core::Bound::Exclusive);
  }
  return out;
}

std::vector<Firing> backwards(const core::CronExpression& e, const core::Zone& zone,
                              const Timeline& timeline) {
  std::vector<Firing> out;
  auto time =
      core::previous_time(e, zone, sys_seconds(seconds(timeline.end())), core::Bound::Exclusive);
  while (time && time->instant.time_since_epoch().count() >= timeline.start) {
    out.push_back(firing(*time));
    time = core::previous_time(e, zone, time->instant, core::Bound::Exclusive);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

struct Tally {
  std::size_t expressions = 0;
  std::size_t firings = 0;
  std::size_t late = 0;  // after a gap
};

void compare(const MadeExpression& made, const core::Zone& zone, const Timeline& timeline,
             Tally& tally) {
  SCOPED_TRACE(made.text);
  const auto parsed = core::parse_cron(made.text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->interval, made.interval);
  const std::vector<Firing> expected = walk(made, timeline);
  EXPECT_EQ(difference(expected, forwards(*parsed, zone, timeline)), "");
  EXPECT_EQ(difference(expected, backwards(*parsed, zone, timeline)), "") << "backwards";
  EXPECT_TRUE(expected.empty() || core::ever_fires(*parsed));
  ++tally.expressions;
  tally.firings += expected.size();
  for (const Firing& f : expected) {
    const auto i = static_cast<std::size_t>((f.instant - timeline.start) / timeline.grain);
    if (f.nominal != timeline.shown[i]) ++tally.late;
  }
}

class CronOracle : public testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    auto found = app::find_zone(GetParam().zone, app::Environment({}));
    ASSERT_TRUE(found) << found.error().message;
    zone_ = std::move(*found);
  }
  // Fixed, and another one for each place and test.
  static std::uint64_t seed(std::uint64_t test) {
    std::uint64_t out = test * 10'000 + static_cast<std::uint64_t>(GetParam().first_year);
    for (const char c : std::string_view(GetParam().zone))
      out = out * 31 + static_cast<unsigned>(c);
    return out;
  }
  Timeline five_years() const {
    const int year = GetParam().first_year;
    return watch_clock(GetParam().zone, new_year(year), new_year(year + 5), 60);
  }
  void tell(const char* what, const Tally& tally) const {
    std::printf("%s from %d, %s: %zu expressions, %zu times, %zu of them after a gap\n",
                GetParam().zone, GetParam().first_year, what, tally.expressions, tally.firings,
                tally.late);
  }
  core::Zone zone_;
};

TEST_P(CronOracle, AgreesMinuteByMinuteOverFiveYears) {
  const Timeline timeline = five_years();
  const auto jumps = timeline.jumps();
  ASSERT_FALSE(jumps.empty());
  SeededRandom random(seed(1));
  Tally tally;
  for (std::uint64_t i = 0; i < expressions_a_zone() && !HasFailure(); ++i) {
    const int hour = timeline.hour_of(jumps[i % jumps.size()]);
    compare(make_expression(random, 60, hour), zone_, timeline, tally);
  }
  EXPECT_GT(tally.late, 0U) << "nothing met a gap";
  tell("minutes", tally);
}

TEST_P(CronOracle, AgreesSecondBySecondAroundEveryChange) {
  SeededRandom random(seed(2));
  Tally tally;
  const Timeline minutes = five_years();
  const auto jumps = minutes.jumps();
  std::vector<Timeline> around;
  for (const std::size_t jump : jumps) {
    const std::int64_t at = minutes.start + 60 * static_cast<std::int64_t>(jump);
    constexpr std::int64_t kHalfADay = 43'200;
    around.push_back(watch_clock(GetParam().zone, at - kHalfADay, at + kHalfADay, 1));
  }
  for (std::uint64_t i = 0; i < expressions_a_zone() && !HasFailure(); ++i) {
    const std::size_t which = i % around.size();
    const int hour = minutes.hour_of(jumps[which]);
    compare(make_expression(random, 1, hour), zone_, around[which], tally);
  }
  tell("seconds", tally);
}

// From anywhere between 1970 and 9999, where no walk goes.
TEST_P(CronOracle, NextAndPreviousAgreeWithEachOtherAnywhere) {
  SeededRandom random(seed(3));
  const auto span = static_cast<std::uint64_t>(new_year(9990));
  for (std::uint64_t i = 0; i < 20 * expressions_a_zone() && !HasFailure(); ++i) {
    const MadeExpression made = make_expression(random, i % 2 == 0 ? 60 : 1, 2);
    const auto e = core::parse_cron(made.text).value();
    const sys_seconds from(seconds(static_cast<std::int64_t>(random.below(span))));
    SCOPED_TRACE(cat(made.text, " from ", format_rfc3339(from, seconds(0))));
    const auto next = core::next_time(e, zone_, from, core::Bound::Exclusive);
    const auto before = core::previous_time(e, zone_, from, core::Bound::Inclusive);
    if (!core::ever_fires(e)) {
      EXPECT_FALSE(next || before);
      continue;
    }
    if (!next || !before) continue;  // too rare for the years that are left
    EXPECT_GT(next->instant, from);
    EXPECT_LE(before->instant, from);
    EXPECT_EQ(core::next_time(e, zone_, next->instant, core::Bound::Inclusive), next);
    EXPECT_EQ(core::previous_time(e, zone_, next->instant, core::Bound::Inclusive), next);
    EXPECT_EQ(core::previous_time(e, zone_, next->instant, core::Bound::Exclusive), before);
    EXPECT_EQ(core::next_time(e, zone_, before->instant, core::Bound::Exclusive), next);
  }
}

INSTANTIATE_TEST_SUITE_P(Places, CronOracle, testing::ValuesIn(kPlaces),
                         [](const testing::TestParamInfo<Place>& place) {
                           std::string name = cat(place.param.zone, place.param.first_year);
                           std::erase_if(name, [](char c) { return c == '/' || c == '_'; });
                           return name;
                         });

}  // namespace
}  // namespace stint::test
