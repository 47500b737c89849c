#include "base/rfc3339.h"

#include <gtest/gtest.h>

namespace stint {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

TEST(Rfc3339, ReadsOffsetsAndFractions) {
  EXPECT_EQ(to_ms(parse_rfc3339("1970-01-01T00:00:00Z").value()), 0);
  EXPECT_EQ(to_ms(parse_rfc3339("1970-01-01t01:30:00+01:30").value()), 0);
  EXPECT_EQ(to_ms(parse_rfc3339("1969-12-31 19:00:00-05:00").value()), 0);
  EXPECT_EQ(to_ms(parse_rfc3339("1970-01-01T00:00:01.5z").value()), 1500);
  EXPECT_EQ(to_ms(parse_rfc3339("1970-01-01T00:00:00.0019999Z").value()), 1);
  EXPECT_EQ(to_ms(parse_rfc3339("9999-12-31T23:59:59Z").value()), 253'402'300'799'000);
  EXPECT_EQ(to_ms(parse_rfc3339("2024-02-29T00:00:00Z").value()), 1'709'164'800'000);
}

TEST(Rfc3339, RefusesWhatIsNoTimeOrHasNoOffset) {
  for (const char* text :
       {"", "now", "2026-11-15", "2026-11-15T06:45:00", "2026-11-15T06:45Z", "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z", "2026-11-15T24:00:00Z", "2026-11-15T06:60:00Z",
        "2026-11-15T06:45:60Z", "2026-11-15T06:45:00.Z", "2026-11-15T06:45:00+1:00",
        "2026-11-15T06:45:00+24:00", "2026-11-15T06:45:00Z ", "26-11-15T06:45:00Z",
        "2026-1-15T06:45:00Z", "+2026-11-15T06:45:00Z", "2026-11-15T06:45:00+0100"}) {
    const auto parsed = parse_rfc3339(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::Invalid);
  }
}

TEST(Rfc3339, WritesTheOffset) {
  EXPECT_EQ(format_rfc3339(sys_seconds(), seconds(0)), "1970-01-01T00:00:00+00:00");
  EXPECT_EQ(format_rfc3339(sys_seconds(), seconds(-18'000)), "1969-12-31T19:00:00-05:00");
  EXPECT_EQ(format_rfc3339(sys_seconds(), seconds(20'700)), "1970-01-01T05:45:00+05:45");
  EXPECT_EQ(format_local(std::chrono::local_days(std::chrono::year(1) / 2 / 3)),
            "0001-02-03T00:00:00");
}

TEST(Rfc3339, AnOffsetWithSecondsKeepsTheInstant) {
  const sys_seconds instant(seconds(-3'000'000'000));
  const std::string text = format_rfc3339(instant, seconds(-17'762));
  EXPECT_EQ(text, "1874-12-07T13:44:00-04:56");
  EXPECT_EQ(to_ms(parse_rfc3339(text).value()), -3'000'000'000'000);
}

}  // namespace
}  // namespace stint
