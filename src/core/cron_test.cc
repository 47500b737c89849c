#include "core/cron.h"

#include <gtest/gtest.h>

#include "base/rfc3339.h"

namespace stint::core {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::sys_seconds;

sys_seconds at(std::string_view text) {
  return sys_seconds(std::chrono::floor<seconds>(parse_rfc3339(text).value().time_since_epoch()));
}

std::string shown(const std::optional<CronTime>& time) {
  return time ? format_rfc3339(time->instant, time->offset) : "never";
}

std::string next(std::string_view expression, std::string_view from, const Zone& zone = {}) {
  return shown(next_time(parse_cron(expression).value(), zone, at(from), Bound::Exclusive));
}
std::string previous(std::string_view expression, std::string_view from, const Zone& zone = {}) {
  return shown(previous_time(parse_cron(expression).value(), zone, at(from), Bound::Exclusive));
}

Zone berlin() { return {hours(1), {}, parse_zone_rule("CET-1CEST,M3.5.0,M10.5.0/3").value()}; }

std::string refusal(std::string_view expression) {
  const auto parsed = parse_cron(expression);
  return parsed ? "accepted" : parsed.error().message;
}

TEST(CronDays, EitherCountsWhereBothAreGiven) {
  // 29 February or a Monday of February.
  EXPECT_EQ(next("0 0 29 2 mon", "2028-02-22T00:00:00Z"), "2028-02-28T00:00:00+00:00");
  EXPECT_EQ(next("0 0 29 2 mon", "2028-02-28T00:00:00Z"), "2028-02-29T00:00:00+00:00");
  EXPECT_EQ(next("0 0 29 2 mon", "2028-02-29T00:00:00Z"), "2029-02-05T00:00:00+00:00");
  // A step is a restriction as well, `*/1` and `?` are none.
  EXPECT_EQ(next("0 0 */15 * mon", "2026-11-16T00:00:00Z"), "2026-11-23T00:00:00+00:00");
  EXPECT_EQ(next("0 0 */1 * mon", "2026-11-16T00:00:00Z"), "2026-11-23T00:00:00+00:00");
  EXPECT_EQ(next("0 0 1-31 * mon", "2026-11-16T00:00:00Z"), "2026-11-17T00:00:00+00:00");
}

TEST(CronDays, OfTheWeekEndOnSundaySeven) {
  EXPECT_EQ(next("0 0 * * 1/3", "2026-11-12T00:00:00Z"), "2026-11-15T00:00:00+00:00");
  EXPECT_EQ(next("0 0 * * 7-2", "2026-11-11T00:00:00Z"), "2026-11-15T00:00:00+00:00");
  EXPECT_EQ(next("0 0 * * fri#L", "2026-11-01T00:00:00Z"), "2026-11-27T00:00:00+00:00");
}

TEST(CronDays, LeapYears) {
  EXPECT_EQ(next("0 0 29 2 *", "2096-03-01T00:00:00Z"), "2104-02-29T00:00:00+00:00");
  EXPECT_EQ(previous("0 0 29 2 *", "2103-01-01T00:00:00Z"), "2096-02-29T00:00:00+00:00");
  // A fifth Monday in February: 40 years from one to the next over 2100.
  EXPECT_EQ(next("0 0 * 2 mon#5", "2072-03-01T00:00:00Z"), "2112-02-29T00:00:00+00:00");
  EXPECT_EQ(previous("0 0 * 2 mon#5", "2112-02-29T00:00:00Z"), "2072-02-29T00:00:00+00:00");
}

TEST(CronTimes, AtTheEndsOfTime) {
  EXPECT_EQ(next("* * * * *", "1970-01-01T00:00:00Z"), "1970-01-01T00:01:00+00:00");
  EXPECT_EQ(previous("* * * * *", "1970-01-01T00:00:00Z"), "1969-12-31T23:59:00+00:00");
  EXPECT_EQ(next("@yearly", "9998-12-31T00:00:00Z"), "9999-01-01T00:00:00+00:00");
  EXPECT_EQ(next("@yearly", "9999-01-01T00:00:00Z"), "never");
  EXPECT_EQ(next("@every_second", "9999-12-31T23:59:58Z"), "9999-12-31T23:59:59+00:00");
  EXPECT_EQ(next("@every_second", "9999-12-31T23:59:59Z"), "never");
  EXPECT_EQ(next("@every 7s", "9999-12-31T23:59:59Z"), "never");
  EXPECT_EQ(previous("@yearly", "0001-01-01T00:00:00Z"), "never");
  EXPECT_EQ(next("@yearly", "0000-05-01T00:00:00Z"), "0001-01-01T00:00:00+00:00");
  EXPECT_EQ(next("0 0 1 1 *", "9998-12-31T23:30:00Z", berlin()), "never");
  const auto minute = parse_cron("* * * * *").value();
  EXPECT_EQ(next_time(minute, berlin(), sys_seconds::max(), Bound::Exclusive), std::nullopt);
  EXPECT_EQ(shown(next_time(minute, berlin(), sys_seconds::min(), Bound::Exclusive)),
            "0001-01-01T00:00:00+01:00");
  EXPECT_EQ(previous_time(minute, berlin(), sys_seconds::min(), Bound::Exclusive), std::nullopt);
  EXPECT_EQ(shown(previous_time(minute, berlin(), sys_seconds::max(), Bound::Exclusive)),
            "9999-12-31T23:59:00+01:00");
}

TEST(CronTimes, WhatNeverFiresIsRecognised) {
  for (const char* never : {"0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 L-29 2 *", "0 0 30W 2 *"}) {
    EXPECT_FALSE(ever_fires(parse_cron(never).value())) << never;
    EXPECT_EQ(next(never, "2026-11-15T00:00:00Z", berlin()), "never");
    EXPECT_EQ(previous(never, "2026-11-15T00:00:00Z", berlin()), "never");
  }
  for (const char* rare :
       {"0 0 29 2 *", "0 0 29W 2 *", "0 0 L-28 2 *", "0 0 * 2 0#5", "@every 9h"}) {
    EXPECT_TRUE(ever_fires(parse_cron(rare).value())) << rare;
  }
  // The day fields are joined by "or".
  EXPECT_TRUE(ever_fires(parse_cron("0 0 30 2 mon").value()));
}

TEST(CronGap, RunsOnceAtItsEndAndKeepsTheNominalTime) {
  const Zone zone = berlin();
  const auto e = parse_cron("15,45 2 * * *").value();
  const auto late = next_time(e, zone, at("2027-03-28T00:00:00+01:00"), Bound::Exclusive);
  EXPECT_EQ(shown(late), "2027-03-28T03:00:00+02:00");
  EXPECT_EQ(format_local(late->nominal), "2027-03-28T02:15:00");
  EXPECT_EQ(shown(next_time(e, zone, late->instant, Bound::Exclusive)),
            "2027-03-29T02:15:00+02:00");
  EXPECT_EQ(previous_time(e, zone, at("2027-03-28T12:00:00+02:00"), Bound::Exclusive), late);
  // A wildcard too; and where the first instant is a nominal time itself, it is that.
  EXPECT_EQ(next("30 * * * *", "2027-03-28T01:30:00+01:00", zone), "2027-03-28T03:00:00+02:00");
  const auto own = next_time(parse_cron("*/30 * * * *").value(), zone,
                             at("2027-03-28T01:30:00+01:00"), Bound::Exclusive);
  EXPECT_EQ(format_local(own->nominal), "2027-03-28T03:00:00");
}

TEST(CronOverlap, RunsIntervalsInBothPassesAndFixedTimesInTheFirst) {
  const Zone zone = berlin();
  EXPECT_EQ(next("30 2 * * *", "2027-10-31T00:00:00+02:00", zone), "2027-10-31T02:30:00+02:00");
  EXPECT_EQ(next("30 2 * * *", "2027-10-31T02:30:00+02:00", zone), "2027-11-01T02:30:00+01:00");
  EXPECT_EQ(next("30 * * * *", "2027-10-31T02:30:00+02:00", zone), "2027-10-31T02:30:00+01:00");
  EXPECT_EQ(previous("30 2 * * *", "2027-10-31T12:00:00+01:00", zone), "2027-10-31T02:30:00+02:00");
  EXPECT_EQ(previous("30 2-2 * * *", "2027-10-31T12:00:00+01:00", zone),
            "2027-10-31T02:30:00+01:00");
}

TEST(CronEvery, CountsFromTheEpochWhateverTheZone) {
  EXPECT_EQ(next("@every 45m", "1970-01-01T00:00:00Z"), "1970-01-01T00:45:00+00:00");
  EXPECT_EQ(previous("@every 45m", "1970-01-01T00:00:00Z"), "1969-12-31T23:15:00+00:00");
  EXPECT_EQ(next("@EVERY 1h30m", "2027-03-28T00:00:00Z", berlin()), "2027-03-28T03:30:00+02:00");
  EXPECT_NE(refusal("@every 500ms").find("whole seconds"), std::string::npos);
  EXPECT_NE(refusal("@every").find("@every 45m"), std::string::npos);
  EXPECT_NE(refusal("@every 0s").find("zero"), std::string::npos);
}

TEST(CronParse, TakesAZoneInFront) {
  EXPECT_EQ(parse_cron("CRON_TZ=Europe/Berlin 0 5 * * *")->zone, "Europe/Berlin");
  EXPECT_EQ(parse_cron("TZ=Asia/Tokyo\t@DAILY")->zone, "Asia/Tokyo");
  EXPECT_EQ(parse_cron("  0 5 *  * *\t")->zone, "");
  EXPECT_NE(refusal("TZ= 0 5 * * *").find("zone after TZ="), std::string::npos);
}

TEST(CronParse, SaysWhatIsWrong) {
  EXPECT_NE(refusal("61 * * * *").find("minutes: '61' is not within 0 to 59"), std::string::npos);
  EXPECT_NE(refusal("*/5 * * * * 30").find("(of six fields the first is the seconds)"),
            std::string::npos);
  EXPECT_NE(refusal("0 0 12 ? * MON 2026").find("no field for the year"), std::string::npos);
  EXPECT_NE(refusal("*,5 * * * *").find("'*' stands alone"), std::string::npos);
  EXPECT_NE(refusal("@reboot").find("no time"), std::string::npos);
  EXPECT_NE(refusal("@daily 5").find("stands alone"), std::string::npos);
  EXPECT_NE(refusal("").find("is empty"), std::string::npos);
  EXPECT_NE(refusal("1-2-3 * * * *").find("minutes: '2-3'"), std::string::npos);
  EXPECT_NE(refusal("1/2/3 * * * *").find("minutes: the step '2/3'"), std::string::npos);
  EXPECT_NE(refusal("\x1b[2J * * * *").find("\\x1b"), std::string::npos)
      << refusal("\x1b[2J * * * *");
  EXPECT_NE(refusal(std::string(2000, '1')).find("at most 1000 bytes"), std::string::npos);
}

}  // namespace
}  // namespace stint::core
