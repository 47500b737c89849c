#include "report/tune.h"

#include <gtest/gtest.h>

namespace stint::report {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TuneInput nightly() {
  TuneInput input;
  for (const int length : {9, 11, 14, 17, 21, 26, 31, 38, 44, 47}) {
    input.runs.push_back({.length = minutes(length)});
  }
  input.ttl = minutes(6);
  input.interval = std::chrono::hours(24);
  return input;
}

// Rescue after 6 minutes, runs take 9 to 47, the job ran two or three times every night.
TEST(Tune, FlagsTheNightlyJobThatRanThreeTimesAndAdvisesWhatDoublesNone) {
  const TuneReport report = tune(nightly());
  EXPECT_EQ(report.present.lost, 10U);
  ASSERT_FALSE(report.flags.empty());
  EXPECT_NE(report.flags.front().find("10 of 10 runs would have lost their lease"),
            std::string::npos);
  EXPECT_EQ(report.advised.lost, 0U);
  EXPECT_GE(report.advised.ttl, minutes(47) * 3 / 2);
  EXPECT_LE(report.advised.ttl, minutes(47) * 2);
  EXPECT_EQ(report.worst, minutes(47));
  EXPECT_EQ(report.p50, minutes(21));
  EXPECT_LE(report.renewed_ttl, report.advised.ttl);
  EXPECT_EQ(report.heartbeat, report.renewed_ttl / 3);
  EXPECT_EQ(report.backfill, 3U);
}

TEST(Tune, AdvisesBetweenOneAndAHalfAndTwiceTheWorst) {
  for (const int worst : {1, 3, 7, 19, 21, 59, 61, 119, 121, 599, 601, 3599, 3601, 40'000}) {
    TuneInput input;
    input.runs.assign(20, {.length = seconds(worst)});
    const TuneReport report = tune(input);
    EXPECT_GE(report.advised.ttl, seconds(worst) * 3 / 2) << worst;
    EXPECT_LE(report.advised.ttl, std::max<Millis>(seconds(worst) * 2, seconds(2))) << worst;
    EXPECT_EQ(report.advised.lost, 0U);
  }
}

TEST(Tune, SaysWhenThereAreTooFewRuns) {
  TuneInput input;
  input.runs = {{.length = minutes(1)}, {.length = minutes(2), .clean = false}};
  const TuneReport report = tune(input);
  EXPECT_EQ(report.count, 2U);
  EXPECT_EQ(report.unclean, 1U);
  EXPECT_EQ(report.advised.ttl.count(), 0);
  EXPECT_NE(report.flags.front().find("5 are the least"), std::string::npos);
  EXPECT_TRUE(tune({}).flags.size() == 1);
}

TEST(Tune, CountsThoseThatKeepTheNextOneWaiting) {
  TuneInput input;
  input.runs.assign(9, {.length = seconds(30)});
  input.runs.push_back({.length = minutes(2)});
  input.runs.push_back({.length = seconds(10), .clean = false});  // holds it for the whole ttl
  input.ttl = minutes(3);
  input.interval = minutes(1);
  EXPECT_EQ(tune(input).present.waiting, 2U);
}

TEST(Tune, TheHistogramHasEveryRunOnce) {
  const auto runs = nightly().runs;
  for (const std::size_t bins : {1U, 2U, 7U, 12U}) {
    std::size_t all = 0;
    const auto found = histogram(runs, bins);
    EXPECT_EQ(found.size(), bins);
    for (const Bin& bin : found) all += bin.count;
    EXPECT_EQ(all, runs.size());
    EXPECT_EQ(histogram_lines(found, 80).size(), bins);
  }
  EXPECT_TRUE(histogram({}, 5).empty());
  const std::vector<RunSample> same(4, {.length = seconds(3)});
  std::size_t all = 0;
  for (const Bin& bin : histogram(same, 5)) all += bin.count;
  EXPECT_EQ(all, 4U);
}

TEST(Tune, TheDrawingIsWellFormedWhateverTheName) {
  const auto runs = nightly().runs;
  const std::string svg = histogram_svg("<job> & \"co\"", histogram(runs, 8), tune(nightly()));
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("<job>"), std::string::npos);
  EXPECT_NE(svg.find("advised"), std::string::npos);
  // A label at the right edge stands before its line, not outside.
  TuneReport edge = tune(nightly());
  edge.present.ttl = 10 * edge.worst;
  const std::string wide = histogram_svg("j", histogram(runs, 8), edge);
  const std::size_t present = wide.find("present");
  const std::size_t text = wide.rfind("<text", present);
  EXPECT_NE(wide.substr(text, present - text).find("text-anchor=\"end\""), std::string::npos)
      << wide;
}

}  // namespace
}  // namespace stint::report
