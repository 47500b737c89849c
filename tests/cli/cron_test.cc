// stint cron next, as people run it.
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

TEST(CronNext, PrintsOneTimeALineWithItsOffset) {
  const Stint stint;
  const Finished done = stint({"cron", "next", "30 2 * * *", "--tz", "Europe/Berlin", "--after",
                               "2027-03-27T00:00:00+01:00", "-n", "3"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out,
            "2027-03-27T02:30:00+01:00\n2027-03-28T03:00:00+02:00\n2027-03-29T02:30:00+02:00\n");
}

TEST(CronNext, GoesBackAndCountsTheTimeItselfWhenAsked) {
  const Stint stint;
  const std::vector<std::string> words = {
      "cron", "next", "*/15 * * * *", "--after", "2026-11-15T06:45:00Z", "-n", "1"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return stint(more).out;
  };
  EXPECT_EQ(with({}), "2026-11-15T07:00:00+00:00\n");
  EXPECT_EQ(with({"--inclusive"}), "2026-11-15T06:45:00+00:00\n");
  EXPECT_EQ(with({"--previous"}), "2026-11-15T06:30:00+00:00\n");
  EXPECT_EQ(with({"--previous", "--inclusive"}), "2026-11-15T06:45:00+00:00\n");
}

TEST(CronNext, PrintsFiveUnlessTold) {
  const Stint stint;
  EXPECT_EQ(stint({"cron", "next", "0 9 * * *", "--after", "2026-11-15T06:45:00Z"}).out,
            "2026-11-15T09:00:00+00:00\n2026-11-16T09:00:00+00:00\n2026-11-17T09:00:00+00:00\n"
            "2026-11-18T09:00:00+00:00\n2026-11-19T09:00:00+00:00\n");
  EXPECT_EQ(stint({"cron", "next", "*/15 * * * *", "--after", "2026-11-15T06:45:00Z", "--previous",
                   "--inclusive", "-n", "2"})
                .out,
            "2026-11-15T06:45:00+00:00\n2026-11-15T06:30:00+00:00\n");
}

TEST(CronNext, BetweenTwoSecondsTheLastHasPassed) {
  const Stint stint;
  const auto at = [&](std::vector<std::string> more) {
    more.insert(more.begin(),
                {"cron", "next", "* * * * * *", "--after", "2026-11-15T06:45:00.5Z", "-n", "1"});
    return stint(more).out;
  };
  EXPECT_EQ(at({}), "2026-11-15T06:45:01+00:00\n");
  EXPECT_EQ(at({"--inclusive"}), "2026-11-15T06:45:01+00:00\n");
  EXPECT_EQ(at({"--previous"}), "2026-11-15T06:45:00+00:00\n");
}

TEST(CronNext, AsJsonHasTheNominalTime) {
  const Stint stint;
  const Finished done = stint({"cron", "next", "30 2 * * *", "--tz", "Europe/Berlin", "--after",
                               "2027-03-28T00:00:00+01:00", "-n", "1", "--json"});
  EXPECT_EQ(done.out, R"([{"at":"2027-03-28T03:00:00+02:00","at_ms":1806195600000,)"
                      R"("nominal":"2027-03-28T02:30:00","zone":"Europe/Berlin"}])"
                      "\n");
}

TEST(CronNext, SaysNeverAndExitsOne) {
  const Stint stint;
  const Finished done = stint({"cron", "next", "0 0 30 2 *"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_EQ(done.out, "never\n");
  const Finished json = stint({"cron", "next", "0 0 30 2 *", "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(json.out, "[]\n");
}

TEST(CronNext, TheZoneOfTheExpressionCounts) {
  const Stint stint;
  const Finished done = stint({"cron", "next", "CRON_TZ=Asia/Tokyo 0 9 * * *", "--tz", "UTC",
                               "--after", "2026-11-15T00:00:00Z", "-n", "1"});
  EXPECT_EQ(done.out, "2026-11-16T09:00:00+09:00\n");
  EXPECT_NE(done.err.find("not --tz UTC"), std::string::npos) << done.err;
}

TEST(CronNext, RefusesBadInputWithOneClearLine) {
  const Stint stint;
  struct Bad {
    std::vector<std::string> words;
    std::string says;
  };
  const std::vector<Bad> all = {
      {{"cron"}, "there is no stint.toml here"},
      {{"cron", "nxet", "* * * * *"}, "there is no stint cron 'nxet'"},
      {{"cron", "next"}, "something is missing"},
      {{"cron", "next", "0", "5", "*", "*", "*"}, "in quotes"},
      {{"cron", "next", "60 * * * *"}, "minutes: '60'"},
      {{"cron", "next", "-1 * * * *"}, "minutes: "},
      {{"cron", "next", "* * * * *", "-n", "0"}, "-n '0'"},
      {{"cron", "next", "* * * * *", "-n", "100001"}, "-n '100001'"},
      {{"cron", "next", "* * * * *", "--after", "tomorrow"}, "--after: 'tomorrow'"},
      {{"cron", "next", "* * * * *", "--after", "2026-11-15T00:00:00"}, "offset"},
      {{"cron", "next", "* * * * *", "--tz", "Mars/Base"}, "there is no time zone 'Mars/Base'"},
      {{"cron", "next", "* * * * *", "--tz", "europe/berlin"}, "large and small letters"},
      {{"cron", "next", "* * * * *", "--tz", "America"}, "there is no time zone 'America'"},
      {{"cron", "next", "* * * * *", "--tz", ""}, "not the name of a time zone"},
      {{"cron", "next", "* * * * *", "--tz", "../../../etc/passwd"}, "not the name of a time zone"},
      {{"cron", "next", "* * * * *", "--tz", "/etc/localtime"}, "not the name of a time zone"},
      {{"cron", "next", "* * * * *", "--tz", "tzdata.zi"}, "not the name of a time zone"},
      {{"cron", "next", "* * * * *", "--tz", "Europe//Berlin"}, "not the name of a time zone"},
      {{"cron", "next", "* * * * *", "--tz", std::string(5000, 'x')}, "not the name"},
      {{"cron", "next", "TZ=Mars/Base * * * * *"}, "there is no time zone 'Mars/Base'"},
  };
  for (const Bad& bad : all) {
    const Finished done = stint(bad.words);
    EXPECT_EQ(done.exit_code, 2) << bad.says << done.err;
    EXPECT_EQ(done.out, "") << bad.says;
    EXPECT_EQ(count_lines(done.err), 1) << done.err;
    EXPECT_NE(done.err.find(bad.says), std::string::npos) << bad.says << "\n" << done.err;
  }
}

TEST(CronNext, WithoutADatabaseOnlyUtcIsKnown) {
  const Stint stint;
  const auto with_tzdir = [&](const std::string& directory, const std::string& zone) {
    Command command = stint.command({"cron", "next", "* * * * *", "--tz", zone});
    command.env.emplace_back("TZDIR", directory);
    return run(command, Millis(20'000));
  };
  EXPECT_EQ(with_tzdir("/nowhere", "UTC").exit_code, 0);
  const Finished none = with_tzdir("/nowhere", "Europe/Berlin");
  EXPECT_EQ(none.exit_code, 69);
  EXPECT_NE(none.err.find("install the package tzdata"), std::string::npos) << none.err;
  // What lies there need not be a zone.
  write_text(stint.dir().file("Rubbish"), "not a zone");
  EXPECT_EQ(with_tzdir(stint.dir().path(), "Rubbish").exit_code, 2);
  write_text(stint.dir().file("Torn"),
             read_text("/usr/share/zoneinfo/Europe/Berlin").substr(0, 300));
  EXPECT_EQ(with_tzdir(stint.dir().path(), "Torn").exit_code, 69);
}

}  // namespace
}  // namespace stint::test
