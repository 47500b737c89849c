#include "tests/support/sweeper.h"

#include <gtest/gtest.h>

#include <iostream>

namespace stint::test {
namespace {

constexpr const char* kOld = "the old text\n";
constexpr const char* kNew = "the new text\n";

class SweeperTest : public testing::Test {
 protected:
  std::function<void()> fresh() {
    return [this] {
      write_text(target_, kOld);
      write_text(source_, kNew);
    };
  }
  std::string whole() const {
    const std::string text = read_text(target_);
    return text == kOld || text == kNew ? "" : "torn: '" + text + "'";
  }

  TempDir folder_;
  std::string target_ = folder_.file("target");
  std::string source_ = folder_.file("source");
};

TEST_F(SweeperTest, FindsAnAtomicReplacementWholeAtEveryCall) {
  int stops = 0;
  const auto report = sweep({.command = {.argv = {"sed", "-i", "s/old/new/", target_}},
                             .from = target_,
                             .prepare = fresh(),
                             .while_stopped =
                                 [&](const Strike& strike) {
                                   ++stops;
                                   EXPECT_EQ(whole(), "") << strike.name();
                                 },
                             .check =
                                 [&](const Strike& strike) {
                                   if (strike.blow == Blow::Stop && read_text(target_) != kNew) {
                                     return std::string("it did not go on");
                                   }
                                   return whole();
                                 }});
  ASSERT_TRUE(report) << report.error().message;
  std::cout << report->text();
  EXPECT_TRUE(report->failures.empty());
  EXPECT_TRUE(report->missed.empty());
  EXPECT_GE(report->rows.at("rename").points, 1);
  for (const auto& [name, row] : report->rows) {
    for (const Blow blow : {Blow::Stop, Blow::Kill, Blow::Eio, Blow::Enospc}) {
      EXPECT_EQ(row.struck.at(blow), row.points) << name << ' ' << word(blow);
    }
  }
  EXPECT_GT(stops, 3);
}

// A copy in place is torn when it dies between the opening and the write: that must be seen.
TEST_F(SweeperTest, FindsACopyInPlaceTorn) {
  const auto report = sweep({.command = {.argv = {"cp", source_, target_}},
                             .from = target_,
                             .blows = {Blow::Kill},
                             .prepare = fresh(),
                             .check = [&](const Strike&) { return whole(); }});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->failures.empty()) << report->text();
}

TEST_F(SweeperTest, SpreadsFewPointsOverAll) {
  const auto report = sweep({.command = {.argv = {"cp", source_, target_}},
                             .from = target_,
                             .blows = {Blow::Eio},
                             .most_points = 2,
                             .prepare = fresh()});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->runs, 2);
}

TEST_F(SweeperTest, SaysWhenThereIsNothingToStrike) {
  const auto report = sweep({.command = {.argv = {"true"}}, .from = target_});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::Unavailable);
}

}  // namespace
}  // namespace stint::test
