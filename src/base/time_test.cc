#include "base/time.h"

#include <gtest/gtest.h>

namespace stint {
namespace {

TEST(ParseDuration, TakesOneOrSeveralUnitsFromLargeToSmall) {
  EXPECT_EQ(parse_duration("250ms").value(), Millis(250));
  EXPECT_EQ(parse_duration("90s").value(), Millis(90'000));
  EXPECT_EQ(parse_duration("5m").value(), Millis(300'000));
  EXPECT_EQ(parse_duration("1h30m").value(), Millis(5'400'000));
  EXPECT_EQ(parse_duration("2d").value(), Millis(172'800'000));
  EXPECT_EQ(parse_duration("1d2h3m4s5ms").value(), Millis(93'784'005));
  EXPECT_EQ(parse_duration_or_none("0s").value(), Millis(0));
  EXPECT_EQ(parse_duration_or_none("90s").value(), Millis(90'000));
  EXPECT_FALSE(parse_duration_or_none("0"));
  EXPECT_FALSE(parse_duration_or_none("-0s"));
  EXPECT_EQ(parse_duration("366d").value(), std::chrono::hours(24 * 366));
}

TEST(ParseDuration, RefusesWhatHasNoUnitOrMakesNoSense) {
  for (const char* text : {"",
                           "90",
                           "s",
                           "-5s",
                           "+5s",
                           "0s",
                           "0h0m",
                           "1.5s",
                           "1 s",
                           " 1s",
                           "1s ",
                           "1x",
                           "5S",
                           "1m1h",
                           "1s1s",
                           "1e3s",
                           "367d",
                           "366d1ms",
                           "99999999999999999999s",
                           "9223372036854775807ms",
                           "1h30"}) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::Invalid) << text;
    EXPECT_NE(parsed.error().message.find("is not a duration"), std::string::npos) << text;
  }
}

TEST(FormatDuration, IsTheShortestExactFormAndParsesBack) {
  EXPECT_EQ(format_duration(Millis(5'400'000)), "1h30m");
  EXPECT_EQ(format_duration(Millis(90'000)), "1m30s");
  EXPECT_EQ(format_duration(Millis(250)), "250ms");
  EXPECT_EQ(format_duration(Millis(0)), "0s");
  EXPECT_EQ(format_duration(Millis(-7)), "0s");
  for (const std::int64_t ms :
       {1, 999, 1000, 1001, 59'999, 60'000, 3'600'001, 86'400'000, 93'784'005}) {
    EXPECT_EQ(parse_duration(format_duration(Millis(ms))).value(), Millis(ms));
  }
}

TEST(RoughDuration, IsForPeople) {
  EXPECT_EQ(rough_duration(Millis(-5)), "0 ms");
  EXPECT_EQ(rough_duration(Millis(999)), "999 ms");
  EXPECT_EQ(rough_duration(Millis(18'400)), "18 s");
  EXPECT_EQ(rough_duration(Millis(119'999)), "119 s");
  EXPECT_EQ(rough_duration(Millis(240'000)), "4 min");
  EXPECT_EQ(rough_duration(Millis(7'500'000)), "2 h 5 min");
  EXPECT_EQ(rough_duration(Millis(180'000'000)), "2 d 2 h");
}

TEST(FormatUtc, IsRfc3339ToTheSecond) {
  EXPECT_EQ(format_utc(wall_from_ms(0)), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_utc(wall_from_ms(951'782'399'999)), "2000-02-28T23:59:59Z");
  EXPECT_EQ(format_utc(wall_from_ms(951'782'400'000)), "2000-02-29T00:00:00Z");
  EXPECT_EQ(format_utc(wall_from_ms(-1)), "1969-12-31T23:59:59Z");
}

}  // namespace
}  // namespace stint
